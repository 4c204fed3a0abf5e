import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  PREVIEW_BOUNDS,
  type Losers,
  type ReachEnding,
} from '#domain/access-revocation/ended-reach/reach-ending.js';
import { everyRevocation } from '#domain/admin/revocation-kinds/every-revocation.js';
import { GitHubReachEnding } from '#domain/github/tokens/reach-ending.repository.js';
import { GRANT_ENDING } from '#domain/oauth/grants/reach-ending.repository.js';
import { CERTIFICATE_ENDING } from '#domain/ssh/reach-ending.repository.js';
import { openPool } from '#platform/database/connection.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { NONE_HELD, ReachWorld, type Person, type Targets } from '../../support/reach-world.js';
import { RecordingLog } from '../../support/recording-log.js';

/** The most credentials of one kind that a preview examines in this test, and in production. */
const MOST = 500;
const IN_PRODUCTION = PREVIEW_BOUNDS.examined;

/** The SQL that gives the person `$1` with the session `$2` further credentials for a target. */
const FURTHER: Readonly<Record<keyof Targets, string>> = {
  application: `
    INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, expires_at)
    SELECT sha256(int4send(n)), c.client_id, $1, $2, '{}', now() + interval '1 hour'
    FROM access_targets c CROSS JOIN generate_series(1, $4::int) n WHERE c.id = $3`,
  cluster: `
    INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, application_id, expires_at)
    SELECT 'AccessToken', sha256(int4send(n)), '{}', g.id, 'svc-cli', $1, c.client_id, now() + interval '1 hour'
    FROM access_targets c CROSS JOIN generate_series(1, $4::int) n
    JOIN oauth_grants g ON g.user_id = $1 AND g.session_id = $2 AND g.client_id = 'svc-cli' WHERE c.id = $3`,
  hosts: `
    WITH given AS (
      INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint, valid_after, valid_before)
      SELECT nextval('ssh_certificate_serial'), $1, $2, 'k', '{a}', 'SHA256:k', 'SHA256:ca', now(), now() + interval '1 hour'
      FROM generate_series(1, $4::int) RETURNING serial, user_id, session_id, principals, valid_before
    )
    INSERT INTO ssh_certificate_groups (target_id, serial, user_id, session_id, principals, valid_before)
    SELECT $3, serial, user_id, session_id, principals, valid_before FROM given`,
  installation: `
    INSERT INTO github_tokens (id, installation_id, owner, user_id, org_id, session_id, sealed, permissions, expires_at)
    SELECT gen_random_uuid(), c.installation_id, 'octo', $1, c.org_id, $2, 'sealed', '{}', now() + interval '1 hour'
    FROM access_targets c CROSS JOIN generate_series(1, $4::int) WHERE c.id = $3`,
};

const ENDING: Readonly<Record<keyof Targets, ReachEnding>> = {
  application: GRANT_ENDING,
  cluster: GRANT_ENDING,
  hosts: CERTIFICATE_ENDING,
  installation: new GitHubReachEnding({ wakeAfter: () => {} }),
};

const KINDS = Object.keys(ENDING) as (keyof Targets)[];

describe('the count of what a change of a rule would end', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let world: ReachWorld;
  let [holder, other]: Person[] = [];

  beforeAll(async () => {
    PREVIEW_BOUNDS.examined = MOST;
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 3);
    await dataSource.query(`INSERT INTO deployment (composition) VALUES ('test')`);
    world = await ReachWorld.found(dataSource);
    [holder, other] = await world.people(2);
    for (const kind of KINDS) {
      const values = [holder?.id, holder?.sessionId, world.targets[kind], MOST - 2];
      await dataSource.query(FURTHER[kind], values);
    }
  });
  afterAll(async () => {
    PREVIEW_BOUNDS.examined = IN_PRODUCTION;
    await dataSource.destroy();
    await database.drop();
  });

  it.each(KINDS)('examines a limited number of credentials: %s', async (kind) => {
    const count = async (losers: Losers) => {
      const held = await ENDING[kind].countHeld(dataSource.manager, world.targets[kind], losers);
      return held && Object.values(held)[0];
    };
    const holderId = holder?.id ?? '';
    const otherId = other?.id ?? '';
    const unmet = { touchWithinSeconds: 60, models: null, userVerification: null };
    expect(await count({ userIds: null })).toBe(MOST);
    expect(await count({ unmet, except: [] })).toBe(MOST);
    await dataSource.query(FURTHER[kind].replaceAll('(n)', '(-n)'), [
      otherId,
      other?.sessionId,
      world.targets[kind],
      1,
    ]);
    expect(await count({ userIds: null })).toBeUndefined();
    expect(await count({ unmet, except: [] })).toBeUndefined();
    expect(await count({ userIds: [holderId, otherId] })).toBeUndefined();
    expect(await count({ userIds: [otherId] })).toBe(2);
    expect(await count({ unmet, except: [holderId] })).toBe(2);
  });
});

describe('the end of the access of many people', () => {
  let database: TestDatabase;
  let dataSource: DataSource;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 3);
    await dataSource.query(`INSERT INTO deployment (composition) VALUES ('test')`);
    await dataSource.query(`CREATE FUNCTION exceed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF (SELECT count(*) FROM gone) > 2 THEN RAISE 'canceled' USING ERRCODE = '57014'; END IF;
      RETURN NULL; END $$`);
    await dataSource.query(`CREATE TRIGGER exceed AFTER DELETE ON sessions REFERENCING OLD TABLE AS gone
      FOR EACH STATEMENT EXECUTE FUNCTION exceed()`);
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  it('goes on with fewer people if a statement exceeds its time limit', async () => {
    const world = await ReachWorld.found(dataSource);
    const people = await world.people(7);
    const cause = { reason: 'a test', revokedBy: 'dns' };
    const counts = await dataSource.transaction(async (tx) => {
      await tx.query('SELECT id FROM users ORDER BY id FOR UPDATE');
      return everyRevocation().end(tx, people, 'domain-lost', cause);
    });
    expect(counts).toMatchObject({ sessions: 7, certificates: 7, github_tokens: 7 });
    for (const person of people) expect(await world.held(person)).toEqual(NONE_HELD);
  });

  it('after lost commits goes on with fewer sessions if a statement exceeds its time limit', async () => {
    const world = await ReachWorld.found(dataSource);
    const people = await world.people(7);
    const counts = await everyRevocation().endOnRecord((work) => dataSource.transaction(work), {
      reason: 'a test',
      revokedBy: 'reconciliation',
    });
    expect(counts).toMatchObject({ sessions: 7, certificates: 7 });
    for (const person of people) expect(await world.held(person)).toEqual(NONE_HELD);
  });
});
