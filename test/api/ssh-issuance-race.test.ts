import { randomUUID } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type {
  CertificateIssuance,
  IssuedCertificate,
  IssuingSession,
} from '#domain/ssh/certificate-issuance.service.js';
import { certificateKindOf } from '#domain/ssh/ssh-certificates.repository.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { ORIGIN, PUBLIC_KEY, SshIssuance } from '../support/ssh-issuance.js';

/** The last step of a de-provisioning, after the steps of {@link deprovision}. */
const ENDS = {
  'a deactivation': 'UPDATE users SET active = false WHERE id = $1',
  'a deletion': 'DELETE FROM users WHERE id = $1',
};

const REFUSED = { status: 'rejected', reason: { code: 'unauthenticated' } };

describe('issuing an SSH certificate during a de-provisioning', () => {
  let world: SshIssuance;
  let session: IssuingSession;

  beforeAll(async () => {
    world = await SshIssuance.open();
  });
  afterAll(() => world.close());
  beforeEach(async () => {
    session = await world.reset();
  });

  /**
   * Runs the first steps of a de-provisioning in their order: it locks the user row, deletes the
   * sessions and revokes the certificates.
   */
  async function deprovision(tx: EntityManager): Promise<void> {
    const { userId } = session;
    await tx.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [userId]);
    await tx.query('DELETE FROM sessions WHERE user_id = $1', [userId]);
    await tx.query(
      `UPDATE ssh_certificates SET revoked_at = now(), revoke_reason = 'gone', revoked_by = 'scim'
       WHERE user_id = $1`,
      [userId],
    );
  }

  /**
   * Ends the session in a transaction, requests a certificate, commits when the request waits, and
   * returns the outcome.
   */
  async function attemptDuring(end: (tx: EntityManager) => Promise<unknown>): Promise<unknown> {
    const service = await world.service('email');
    const { attempt } = await world.dataSource.transaction(async (tx) => {
      await end(tx);
      const issue = Promise.allSettled([issueWith(service)]);
      await untilWaiting(world.dataSource, 1);
      return { attempt: issue };
    });
    return attempt;
  }

  function issueWith(service: CertificateIssuance): Promise<IssuedCertificate> {
    return service.issue({ session, request: { publicKey: PUBLIC_KEY }, origin: ORIGIN });
  }

  async function revokedSerials(): Promise<unknown[]> {
    const rows = await world.rows('ssh_certificates');
    return rows.filter((row) => row['revoked_at'] !== null).map((row) => row['serial']);
  }

  it.each(Object.entries(ENDS))('waits for %s that came first, and is refused', async (_, end) => {
    const attempt = await attemptDuring(async (tx) => {
      await deprovision(tx);
      await tx.query(end, [session.userId]);
    });
    expect(attempt).toMatchObject([REFUSED]);
    expect(await world.rows('ssh_certificates')).toEqual([]);
  });

  it('waits for a de-provisioning that has only locked the user so far', async () => {
    const attempt = await attemptDuring((tx) =>
      tx.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [session.userId]),
    );
    // issued, because the de-provisioning was rolled back
    expect(attempt).toMatchObject([{ status: 'fulfilled' }]);
  });

  it('waits for a logout that came first, and is refused', async () => {
    const attempt = await attemptDuring((tx) =>
      tx.query('DELETE FROM sessions WHERE id = $1', [session.sessionId]),
    );
    expect(attempt).toMatchObject([REFUSED]);
  });

  it('makes a later de-provisioning wait, which then finds the certificate', async () => {
    const { second } = await world.dataSource.transaction(async (tx) => {
      const request = {
        ...session,
        keyId: 'k',
        keyFingerprint: 'SHA256:k',
        caFingerprint: 'SHA256:ca',
        isSecurityKey: false,
        attestationRequired: false,
        attestation: undefined,
        principalsDomain: undefined,
        principals: ['alice@example.com'],
        principalsElsewhere: ['alice@example.com'],
        groupPrincipals: undefined,
        host: undefined,
        ttlSeconds: undefined,
        mostOnRecord: undefined,
        auditId: randomUUID(),
        origin: ORIGIN,
      };
      const outcome = await certificateKindOf(request).issue(tx, request);
      expect(outcome).toHaveProperty('issued.serial');
      const waiting = world.dataSource.transaction(deprovision);
      await untilWaiting(world.dataSource, 1);
      return { second: waiting };
    });
    await second;
    expect(await revokedSerials()).toHaveLength(1);
  });

  it.each(Object.entries(ENDS))(
    '%s during a storm of requests leaves no certificate unrevoked',
    async (_, end) => {
      const service = await world.service('email');
      const issued: string[] = [];
      const underWay = Promise.withResolvers<void>();
      const storm = Array.from({ length: 8 }, async () => {
        for (;;) {
          // the loop ends when this throws, because the request is refused
          const { serial } = await issueWith(service);
          if (issued.push(serial.toString()) === 20) underWay.resolve();
        }
      });
      const refusals = Promise.allSettled(storm);
      await underWay.promise;
      await world.dataSource.transaction(async (tx) => {
        await deprovision(tx);
        await tx.query(end, [session.userId]);
      });
      expect(await refusals).toMatchObject(storm.map(() => REFUSED));
      expect(new Set(await revokedSerials())).toEqual(new Set(issued));
    },
  );
});
