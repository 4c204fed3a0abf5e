import { describe, expect, it } from 'vitest';
import type { AuditRow } from '#domain/audit/audit-filter.js';
import { sentenceOf } from '../../../src/features/pages/admin/event-words.js';

const EVE = '01890000-0000-7000-8000-000000000001';
const ADA = '01890000-0000-7000-8000-000000000002';

function said(changes: Partial<AuditRow>): string {
  const at = new Date('2026-11-17T10:00:00Z');
  const row: AuditRow = {
    id: EVE,
    type: 'login_success',
    class: 'auth',
    actorId: ADA,
    subjectId: ADA,
    actorEmail: 'ada@a.example',
    subjectEmail: 'ada@a.example',
    clientName: null,
    requestId: null,
    ip: null,
    userAgent: null,
    details: {},
    createdAt: at,
    place: { at: at.toISOString(), id: EVE },
    ...changes,
  };
  return sentenceOf(row)
    .map(({ text }) => text)
    .join('');
}

describe('the sentence of an event in the audit log', () => {
  it('says what an identity provider did to a member and to a group', () => {
    const byScim = { type: 'scim_operation', actorId: null, actorEmail: null };
    const details = { operation: 'delete', resource_type: 'User', resource_id: EVE };
    expect(said({ ...byScim, details })).toBe(
      'The identity provider deleted the member ada@a.example',
    );
    const group = { operation: 'update', resource_type: 'Group', display_name: 'Engines' };
    const noUser = { subjectId: null, subjectEmail: null };
    expect(said({ ...byScim, ...noUser, details: group })).toBe(
      'The identity provider changed the group Engines',
    );
  });

  it('does not say that a member removed a key or ended a session where an admin did', () => {
    const byEve = { actorId: EVE, actorEmail: 'eve@a.example' };
    expect(said({ type: 'key_removed', details: { name: 'Blue' }, ...byEve })).toBe(
      'eve@a.example removed the key “Blue” of ada@a.example',
    );
    expect(said({ type: 'session_ended', ...byEve })).toBe(
      'eve@a.example ended a session of ada@a.example',
    );
    expect(said({ type: 'key_removed', details: { name: 'Blue' } })).toBe(
      'ada@a.example removed the key “Blue”',
    );
  });

  it('says what an application did not hear, about whom, and why', () => {
    const unheard = (notice: string, changes: Partial<AuditRow> = {}) =>
      said({
        type: 'notice_dead_lettered',
        actorId: null,
        actorEmail: null,
        clientName: 'Wiki',
        details: { client_id: 'c', sub: ADA, notice, result: 'answer 500' },
        ...changes,
      });
    const ended = 'Wiki did not hear that the access of ada@a.example ended: answer 500';
    for (const notice of ['backchannel_logout', 'session-revoked', 'account-purged']) {
      expect(unheard(notice)).toBe(ended);
    }
    expect(unheard('credential-change')).toBe(
      'Wiki did not hear that a security key of ada@a.example changed: answer 500',
    );
    expect(unheard('account-enabled')).toBe(
      'Wiki did not hear that ada@a.example was activated: answer 500',
    );
    const noUser = { subjectId: null, subjectEmail: null };
    expect(unheard('verification', noUser)).toBe(
      'Wiki did not take an event about its stream: answer 500',
    );
    expect(unheard('backchannel_logout', noUser)).toBe(
      `Wiki did not hear that the access of ${ADA} ended: answer 500`,
    );
  });

  it('says who lost a target and why, who was refused it, and how a rule changed', () => {
    const target = { kind: 'host_group', name: 'prod', id: EVE };
    expect(said({ type: 'access_ended', details: { target, rule: 'membership' } })).toBe(
      'ada@a.example lost the reach of the hosts prod: no longer in an assigned group',
    );
    const role = { kind: 'aws_role', name: null };
    expect(said({ type: 'access_refused', details: { target: role, rule: 'assignment' } })).toBe(
      'ada@a.example was refused the AWS role: not assigned',
    );
    const change = { target, change: 'rule', rule: { access: 'assigned' } };
    expect(said({ type: 'access_rule_changed', details: change })).toBe(
      'ada@a.example changed who may reach the hosts prod: only assigned people',
    );
    expect(said({ type: 'access_rule_changed', details: { target, change: 'deleted' } })).toBe(
      'ada@a.example deleted the hosts prod',
    );
  });

  it('names the person at the machine for an act of break-glass, and not the service', () => {
    const details = { by: 'operator', os_user: 'root', os_uid: 0, host: 'a' };
    const act = { type: 'admin_promote', actorId: null, actorEmail: null, details };
    expect(said(act)).toBe('The operator root made ada@a.example an admin');
  });
});
