import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CertificateCounts } from '#domain/ssh/certificate-counts.js';
import { CertificateIssuance } from '#domain/ssh/certificate-issuance.service.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { idOf, orgApi } from '../support/org-api.js';
import { atScale } from '../support/scale.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

/** The limit in production is 200,000. */
const MOST = atScale({ small: 300, full: 200_000 });
const AT_ONCE = 25_000;

describe('the certificates of a user that are not revoked, which one request must be able to revoke', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  const certificate = (client: Client) =>
    client.post(
      '/v1/credentials/ssh',
      { public_key: newPublicKeyLine() },
      { address: newAddress() },
    );

  /**
   * Inserts expired certificates of a user, with serials far above those that the service draws.
   */
  async function record(userId: string, number: number): Promise<void> {
    for (let from = 0; from < number; from += AT_ONCE) {
      await app.dataSource.query(
        `INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint, valid_after, valid_before)
         SELECT 1000000000 + n, $3, $4, 'k', '{p}', 'f', 'c', now() - interval '3 days', now() - interval '2 days'
         FROM generate_series($1::bigint, $2::bigint) n`,
        [from, Math.min(from + AT_ONCE, number) - 1, userId, randomUUID()],
      );
    }
  }

  it('have a limit, expired ones included', async () => {
    const { client: ada } = await app.enrolled('ada@very-many.example');
    const { client: bob } = await app.enrolled('bob@very-many.example');
    app.nest.get(CertificateIssuance, { strict: false }).counts = new CertificateCounts(MOST, 3);
    const id = await idOf(app, 'bob@very-many.example');
    await record(id, MOST - 1);
    // Only one request of three counts the certificates, and after a refusal every one.
    for (const status of [200, 200, 200, 403, 403]) {
      const answer = await certificate(bob);
      expect(answer.status).toBe(status);
      if (status === 200) continue;
      expect(answer.json.code).toBe('issuance_refused');
      expect(answer.json.detail).toContain('too many certificates');
    }
    expect((await certificate(ada)).status).toBe(200);
    const ended = await orgApi(ada, 'POST', `/members/${id}/deactivate`);
    expect([ended.status, ended.json.ended.certificates]).toEqual([200, 3]);
  });
});
