import { beforeAll, beforeEach, afterAll, describe, expect, it } from 'vitest';
import type { IssuingSession } from '#domain/ssh/certificate-issuance.service.js';
import { sshFingerprint } from '@svc/openssh';
import { FINGERPRINT, ORIGIN, PUBLIC_KEY, SshIssuance } from '../support/ssh-issuance.js';

const BOTH = ['email', 'username'] as const;

describe('issuing an SSH certificate', () => {
  let world: SshIssuance;
  let session: IssuingSession;

  beforeAll(async () => {
    world = await SshIssuance.open();
  });
  afterAll(() => world.close());
  beforeEach(async () => {
    session = await world.reset();
  });

  async function sessionEnd(): Promise<number> {
    const [row] = await world.rows('sessions');
    return Math.floor(Number(row?.['expires_at']) / 1000) * 1000;
  }

  describe('the issued certificate', () => {
    it('is recorded with the same fields, and with its audit event', async () => {
      const issued = await world.issue(session);
      const [event] = await world.rows('audit_events');
      const [user] = await world.rows('users');
      expect(await world.rows('ssh_certificates')).toMatchObject([
        {
          serial: issued.serial.toString(),
          user_id: session.userId,
          org_id: user?.['org_id'],
          session_id: session.sessionId,
          key_id: 'alice@example.com@svc.example.com',
          principals: ['alice@example.com'],
          public_key: FINGERPRINT,
          ca_fingerprint: sshFingerprint(
            Buffer.from(issued.caPublicKey.split(' ')[1] ?? '', 'base64'),
          ),
          valid_after: issued.validAfter,
          valid_before: issued.validBefore,
          revoked_at: null,
        },
      ]);
      expect(event).toMatchObject({
        type: 'ssh_credential',
        class: 'oauth',
        actor_id: session.userId,
        subject_id: session.userId,
        org_id: user?.['org_id'],
        request_id: 'request-1',
        ip: '192.0.2.7',
        user_agent: 'test',
        details: {
          serial: issued.serial.toString(),
          key_id: issued.keyId,
          principals: issued.principals,
          public_key: FINGERPRINT,
        },
      });
    });

    it('costs one statement', async () => {
      const service = await world.service('email');
      world.statements.length = 0;
      await service.issue({ session, request: { publicKey: PUBLIC_KEY }, origin: ORIGIN });
      expect(world.statements).toHaveLength(1);
    });

    it('is valid from a minute ago to the end of the session, in whole seconds', async () => {
      const before = Date.now();
      const issued = await world.issue(session);
      expect(issued.validAfter.getMilliseconds()).toBe(0);
      const minuteLater = issued.validAfter.getTime() + 60_000;
      expect(minuteLater).toBeGreaterThan(before - 1000);
      expect(minuteLater).toBeLessThanOrEqual(Date.now());
      expect(issued.validBefore.getTime()).toBe(await sessionEnd());
    });

    it('ends earlier on request', async () => {
      const issued = await world.issue(session, { ttlSeconds: 300 });
      const seconds = (issued.validBefore.getTime() - issued.validAfter.getTime()) / 1000;
      expect(seconds).toBe(360);
    });

    it.each([9 * 3600, Number.MAX_SAFE_INTEGER])(
      'never outlives the session, when %d seconds are requested',
      async (ttl) => {
        const issued = await world.issue(session, { ttlSeconds: ttl });
        expect(issued.validBefore.getTime()).toBe(await sessionEnd());
      },
    );

    it('has twenty serials for twenty issues at once', async () => {
      const service = await world.service('email');
      const request = { publicKey: PUBLIC_KEY };
      const issued = await Promise.all(
        Array.from({ length: 20 }, () => service.issue({ session, request, origin: ORIGIN })),
      );
      expect(new Set(issued.map(({ serial }) => serial)).size).toBe(20);
      expect(await world.rows('ssh_certificates')).toHaveLength(20);
      expect(await world.rows('audit_events')).toHaveLength(20);
    });

    it('is withheld when its audit event cannot be written', async () => {
      const service = await world.service('email');
      const origin = { ...ORIGIN, ip: 'no address' };
      await expect(
        service.issue({ session, request: { publicKey: PUBLIC_KEY }, origin }),
      ).rejects.toThrow('inet');
      expect(await world.rows('ssh_certificates')).toEqual([]);
    });
  });

  describe('principals', () => {
    it('are the requested ones, once each, when they belong to the user', async () => {
      const asked = ['alice', 'alice'];
      expect((await world.issue(session, { principals: asked }, BOTH)).principals).toEqual([
        'alice',
      ]);
    });

    it('are the address and the account name in a deployment of one organization', async () => {
      const { principals } = await world.issue(session, {}, BOTH);
      expect(principals).toEqual(['alice@example.com', 'alice']);
    });

    it('are only the address when there is a second organization', async () => {
      await world.newOrganization('example.org');
      const { principals } = await world.issue(session, {}, BOTH);
      expect(principals).toEqual(['alice@example.com']);
    });

    it('keep the account name in the organization of SVC_SSH_PRINCIPALS_DOMAIN, which no second one takes away', async () => {
      const other = await world.newOrganization('example.org');
      const { principals } = await world.issue(session, {}, BOTH, 'example.com');
      expect(principals).toEqual(['alice@example.com', 'alice']);
      const stranger = await world.signIn('alice@example.org', other);
      const theirs = await world.issue(stranger, {}, BOTH, 'example.com');
      expect(theirs.principals).toEqual(['alice@example.org']);
      const outsider = await world.signIn('alice@mail.example', null);
      const none = await world.issue(outsider, {}, BOTH, 'example.com');
      expect(none.principals).toEqual(['alice@mail.example']);
    });

    it('are only the address, also in the only organization, while it does not own SVC_SSH_PRINCIPALS_DOMAIN', async () => {
      const { principals } = await world.issue(session, {}, BOTH, 'example.net');
      expect(principals).toEqual(['alice@example.com']);
      await world.dataSource.query(
        `INSERT INTO organization_domains (org_id, domain) SELECT org_id, 'example.net' FROM users LIMIT 1`,
      );
      const pending = await world.issue(session, {}, BOTH, 'example.net');
      expect(pending.principals).toEqual(['alice@example.com']);
    });

    it('are only the address for a user without an organization', async () => {
      session = await world.signIn('alice@mail.example', null);
      const { principals } = await world.issue(session, {}, BOTH);
      expect(principals).toEqual(['alice@mail.example']);
    });

    it.each([
      ['another person’s address', ['bob@example.com']],
      ['root beside one’s own', ['alice@example.com', 'root']],
      ['the account name where only addresses are given', ['alice']],
      ['an empty name', ['']],
    ])('refuses %s', async (_, principals) => {
      await expect(world.issue(session, { principals })).rejects.toMatchObject({
        code: 'principal_not_allowed',
      });
      expect(await world.rows('ssh_certificates')).toEqual([]);
    });

    it('are refused, not omitted, when they name an account in a deployment of two organizations', async () => {
      await world.newOrganization('example.org');
      const asked = { principals: ['alice@example.com', 'alice'] };
      await expect(world.issue(session, asked, BOTH)).rejects.toMatchObject({
        code: 'principal_not_allowed',
      });
    });

    it('are never empty: an e-mail without an account name gets no certificate', async () => {
      session = await world.signIn('root@nobodys.example', null);
      await expect(world.issue(session, {}, ['username'])).rejects.toMatchObject({
        code: 'principal_not_allowed',
      });
      await expect(world.issue(session, { principals: [] })).rejects.toMatchObject({
        code: 'invalid_request',
      });
      expect(await world.rows('ssh_certificates')).toEqual([]);
    });
  });

  describe('a request that gets no certificate', () => {
    it.each([
      ['a session that was deleted', 'DELETE FROM sessions', 'unauthenticated'],
      ['a session that expired', 'UPDATE sessions SET expires_at = now()', 'unauthenticated'],
      ['a bootstrap session', `UPDATE sessions SET level = 'bootstrap'`, 'unauthenticated'],
      ['a user who was deleted', 'DELETE FROM users', 'unauthenticated'],
      [
        'a user whose address changed meanwhile',
        `UPDATE users SET email = 'alice2@example.com'`,
        'unauthenticated',
      ],
      ['a deactivated user', 'UPDATE users SET active = false', 'account_inactive'],
      [
        'a user of a domain that is not proven',
        'UPDATE organization_domains SET verified_at = NULL',
        'issuance_refused',
      ],
      [
        'a user of a domain that is another organization’s',
        `WITH other AS (INSERT INTO organizations (id, name)
           VALUES (gen_random_uuid(), 'other') RETURNING id)
         UPDATE organization_domains SET org_id = (SELECT id FROM other)`,
        'issuance_refused',
      ],
    ])('%s', async (_, statement, code) => {
      await world.dataSource.query(statement);
      await expect(world.issue(session)).rejects.toMatchObject({ code });
      expect(await world.rows('ssh_certificates')).toEqual([]);
      expect(await world.rows('audit_events')).toEqual([]);
    });

    it('names the session of another user', async () => {
      const bob = await world.signIn('bob@example.com', null);
      session = { ...session, sessionId: bob.sessionId };
      await expect(world.issue(session)).rejects.toMatchObject({ code: 'unauthenticated' });
    });

    it('comes from a user of an unowned domain, though a user without an organization gets one', async () => {
      session = await world.signIn('carol@elsewhere.example', null);
      expect((await world.issue(session)).principals).toEqual(['carol@elsewhere.example']);
      const [organization] = await world.rows('organizations');
      await world.dataSource.query('UPDATE users SET org_id = $1 WHERE id = $2', [
        organization?.['id'],
        session.userId,
      ]);
      await expect(world.issue(session)).rejects.toMatchObject({ code: 'issuance_refused' });
    });

    it('contains a malformed key', async () => {
      await expect(world.issue(session, { publicKey: 'garbage' })).rejects.toMatchObject({
        code: 'invalid_public_key',
      });
    });
  });
});
