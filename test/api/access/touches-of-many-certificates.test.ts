import type { DataSource, EntityManager } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CertificateRevocation } from '#domain/ssh/certificate-revocation.repository.js';
import { openPool } from '#platform/database/connection.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { ReachWorld, type Person } from '../../support/reach-world.js';
import { RecordingLog } from '../../support/recording-log.js';
import { rows } from '../../support/rows.js';

const CERTIFICATES = 10_000;
const KEYS = 20;
const CAUSE = { reason: 'key removed', revokedBy: 'test' };

/** The limit of each statement, a tenth of the limit in production. */
const IN_TIME = `SET LOCAL statement_timeout = '1s'`;

/**
 * A person with many keys has got many certificates of a `fips-only` group of hosts. PostgreSQL has
 * no statistics of the tables.
 */
describe('the touches of a removed key in a session with many certificates', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let person: Person;
  let certificates: CertificateRevocation;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 3);
    await run(`INSERT INTO deployment (composition) VALUES ('test')`);
    for (const table of ['ssh_certificates', 'ssh_certificate_groups', 'authenticators']) {
      await run(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
    }
    const world = await ReachWorld.found(dataSource);
    person = await world.person();
    certificates = new CertificateRevocation();
    await run(`UPDATE access_targets SET models = 'fips-only' WHERE id = $1`, [
      world.targets.hosts,
    ]);
    await run(
      `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
       SELECT gen_random_uuid(), $1, sha256(convert_to(n::text, 'UTF8')), 'pem', 0, 'packed', true, 'key' FROM generate_series(2, $2::int) n`,
      [person.id, KEYS],
    );
    await run('UPDATE ssh_certificates SET authenticator_id = user_id');
    await run(
      `WITH given AS (
         INSERT INTO ssh_certificates (serial, user_id, org_id, session_id, authenticator_id, key_id, principals, public_key, ca_fingerprint, valid_after, valid_before)
         SELECT nextval('ssh_certificate_serial'), c.user_id, c.org_id, c.session_id, c.authenticator_id, c.key_id, c.principals, c.public_key,
                c.ca_fingerprint, c.valid_after, c.valid_before
         FROM ssh_certificates c CROSS JOIN generate_series(2, $2::int)
         RETURNING serial, user_id, session_id, valid_before, principals
       )
       INSERT INTO ssh_certificate_groups (target_id, serial, user_id, session_id, principals, valid_before)
       SELECT $1, serial, user_id, session_id, principals, valid_before FROM given`,
      [world.targets.hosts, CERTIFICATES],
    );
  }, 120_000);
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  const run = (statement: string, parameters: unknown[] = []) =>
    dataSource.query(statement, parameters);

  const inTime = <T>(work: (tx: EntityManager) => Promise<T>): Promise<T> =>
    dataSource.transaction(async (tx) => {
      await tx.query(IN_TIME);
      return work(tx);
    });

  /** Records touches of keys in the session, all of them by keys of FIPS-certified models. */
  const touchBy = (keyIds: readonly string[]) =>
    run(
      `UPDATE sessions SET touches = (
         SELECT jsonb_object_agg(id, jsonb_build_object('at', extract(epoch FROM now()), 'uv', NULL, 'fips', true)) FROM unnest($2::uuid[]) id)
       WHERE id = $1`,
      [person.sessionId, keyIds],
    );

  it('are found in time, for the page and for the removal', async () => {
    const keys = await rows<{ id: string }>(
      dataSource,
      'SELECT id FROM authenticators WHERE user_id = $1 AND id <> $1',
      [person.id],
    );
    const removed = keys[0]?.id ?? '';
    const end = () => inTime((tx) => certificates.revokeOfKey(tx, person, removed, CAUSE));
    const count = async () =>
      (await inTime((tx) => certificates.countByKey(tx, person.id))).find(
        ({ keyId }) => keyId === removed,
      )?.count;

    await touchBy(keys.map(({ id }) => id));
    expect(await count()).toBeUndefined();
    expect(await end()).toEqual({ certificates: 0 });

    await touchBy([removed]);
    expect(await count()).toEqual({ certificates: CERTIFICATES });
    expect(await end()).toEqual({ certificates: CERTIFICATES });
    expect(await count()).toBeUndefined();
  });
});
