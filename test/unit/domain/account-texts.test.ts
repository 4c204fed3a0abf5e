import { describe, expect, it } from 'vitest';
import { activityText } from '#domain/account/activity-text.js';
import { AUDIT_TYPES } from '#domain/audit/audit-event.js';
import { keyDrawing } from '../../../src/features/pages/account/key-drawing.js';

const ME = '01890000-0000-7000-8000-000000000001';
const ADMIN = '01890000-0000-7000-8000-000000000002';

const event = (changes: Partial<Parameters<typeof activityText>[0]>) => ({
  type: 'login_success' as const,
  actorId: ME,
  subjectId: ME,
  actorEmail: 'ada@a.example',
  subjectEmail: 'ada@a.example',
  clientName: null,
  details: {},
  ...changes,
});

describe('the text of an event', () => {
  it('is a text for every type, also without details', () => {
    for (const type of AUDIT_TYPES) {
      expect(activityText(event({ type }), ME)).toMatch(/^[A-Za-z“].{5,}$/);
    }
  });

  it('names the admin who acted on the user, and the member on whom the user acted', () => {
    const act = { type: 'admin_demote', actorId: ADMIN, actorEmail: 'eve@a.example' } as const;
    expect(activityText(event(act), ME)).toBe('eve@a.example took the rights of an admin from you');
    expect(activityText(event(act), ADMIN)).toBe(
      'You took the rights of an admin from ada@a.example',
    );
  });

  it('says in plain words what a user did to the organization', () => {
    const made = event({ type: 'scim_token_created', details: { description: 'Okta' } });
    expect(activityText(made, ME)).toBe('You made the SCIM token “Okta”');
    const domain = event({ type: 'org_domain_added', details: { domain: 'a.example' } });
    expect(activityText(domain, ME)).toBe('You added the domain a.example');
    expect(activityText(event({ type: 'admin_promote' }), ME)).toBe('You became an admin');
  });

  it('does not say to a user that the user did what an admin did', () => {
    const by = { actorId: ADMIN, actorEmail: 'eve@a.example' };
    const removed = event({ type: 'key_removed', details: { name: 'Blue …' }, ...by });
    const ended = event({ type: 'session_ended', ...by });
    expect(activityText(removed, ME)).toBe('eve@a.example removed the key “Blue …” of you');
    expect(activityText(ended, ME)).toBe('eve@a.example ended a session of you');
    expect(activityText(ended, ADMIN)).toBe('You ended a session of ada@a.example');
    expect(activityText(event({ type: 'session_ended' }), ME)).toBe('You ended a session');
  });

  it('says what an application did not hear', () => {
    const unheard = (notice: string) =>
      activityText(
        event({
          type: 'notice_dead_lettered',
          actorId: null,
          clientName: 'Wiki',
          details: { notice, client_id: 'c' },
        }),
        ME,
      );
    expect(unheard('backchannel_logout')).toBe('Wiki did not hear that your access ended');
    expect(unheard('account-purged')).toBe('Wiki did not hear that your access ended');
    expect(unheard('credential-change')).toBe(
      'Wiki did not hear that a security key of yours changed',
    );
  });

  it('names the operator of the service as such, and says who gave a pass', () => {
    const details = { by: 'operator', os_user: 'root' };
    const by = { actorId: null, actorEmail: null, details };
    const revoked = event({ type: 'admin_revoke_credentials', ...by });
    expect(activityText(revoked, ME)).toBe(
      'The operator of the service revoked all credentials of you',
    );
    const given = { type: 'enrollment_pass_created', actorId: ADMIN, actorEmail: 'eve@a.example' };
    expect(activityText(event(given as never), ME)).toMatch(/^eve@a\.example revoked .* pass$/);
    expect(activityText(event({ type: 'enrollment_pass_used' }), ME)).toMatch(/^You enrolled/);
  });

  it('has no change of direction and no endless name of a key or an application', () => {
    const hostile = `\u202e${'W'.repeat(10_000)}\n`;
    const details = { earlier_name: hostile, name: hostile };
    for (const type of ['key_renamed', 'oauth_access_ended'] as const) {
      const text = activityText(event({ type, details, clientName: hostile }), ME);
      expect(text).not.toMatch(/[\u202a-\u202e\n]/);
      expect(text.length).toBeLessThan(400);
    }
  });
});

describe('the drawing of a key', () => {
  it.each([
    ['Security Key NFC by Yubico', 'keychain'],
    ['YubiKey 5 FIPS Series with NFC', 'keychain'],
    ['YubiKey 5 CCN Series with NFC', 'keychain'],
    ['YubiKey 5 Series with Lightning', 'lightning'],
    ['YubiKey 5 Series', 'compact'],
    ['YubiKey 5 Nano', 'nano'],
    ['YubiKey Bio Series - FIDO Edition', 'fingerprint'],
    ['Key of another maker', 'unknown'],
    [null, 'unknown'],
  ])('of %s is %s, with the place to touch in words', (model, form) => {
    const drawing = keyDrawing(model);
    expect(drawing.form).toBe(form);
    expect(drawing.text).toMatch(/^(?:Touch|Lay) .+\.$/);
  });
});
