import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { writePrivateKey } from '@svc/openssh';
import { GRANT } from '#domain/oauth/grants/grants.repository.js';
import { openPool } from '#platform/database/connection.js';
import { assign, makeGroupRow, queuedEndings, setRule } from '../../support/access-rows.js';
import { startTestApp } from '../../support/app.js';
import { runScript } from '../../support/child-script.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { lockWaiters } from '../../support/lock-waiters.js';
import { endedEvents, ReachWorld, type Person } from '../../support/reach-world.js';
import { RecordingLog } from '../../support/recording-log.js';
import type { ReplicaAnswer, ReplicaArgument } from '../../support/replica.js';
import { count, rows } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';

const MEMBERS = atScale({ small: 2_000, full: 100_000 });
const CHUNK = 2_000;
const SOON = { timeout: 300_000, interval: 50 };

describe(`a server that is killed while a group of ${MEMBERS} ends`, () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let world: ReachWorld;
  let people: Person[];
  let group: string;
  let argument: ReplicaArgument;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 5);
    const { privateKey } = generateKeyPairSync('ed25519');
    const environment = { SVC_SSH_CA_KEY: writePrivateKey(privateKey, 'ca') };
    argument = { database: { url: database.url }, environment };
    world = await ReachWorld.found(dataSource);
    people = [];
    while (people.length < MEMBERS) people.push(...(await world.people(CHUNK, 'a token')));
    group = await makeGroupRow(
      dataSource,
      world.orgId,
      'g',
      people.map(({ id }) => id),
    );
    await assign(dataSource, world.targets.application, { groupId: group });
    await setRule(dataSource, world.targets.application, { access: 'assigned' });
    await dataSource.query('TRUNCATE access_endings');
  }, 300_000);
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  const grants = () => count(dataSource, 'oauth_grants WHERE client_id = $1', [world.clientId]);

  /** Requests a grant for a person whose earlier grant has not been ended yet. */
  async function issueToLeft() {
    const [left] = await rows<{ user_id: string; session_id: string }>(
      dataSource,
      'SELECT user_id, session_id FROM oauth_grants WHERE client_id = $1 LIMIT 1',
      [world.clientId],
    );
    return GRANT.issue(dataSource.manager, {
      id: randomBytes(32),
      clientId: world.clientId,
      userId: left?.user_id ?? randomUUID(),
      sessionId: left?.session_id ?? randomUUID(),
      payload: {},
      expiresIn: 600,
    });
  }

  it('goes on after the restart, issues nothing meanwhile, and records each person once', async () => {
    const first = runScript<ReplicaAnswer>('replica.ts', argument);
    await first.answer;
    // A batch ends the access of 500 people. The worker waits for the locked row of a person of the
    // third batch, and is killed there.
    const [parked] = await rows<{ user_id: string }>(
      dataSource,
      'SELECT user_id FROM oauth_grants WHERE client_id = $1 ORDER BY id OFFSET 1200 LIMIT 1',
      [world.clientId],
    );
    const runner = dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [parked?.user_id]);
    await dataSource.query('DELETE FROM groups WHERE id = $1', [group]);
    await vi.waitUntil(async () => (await lockWaiters(dataSource)) === 1, SOON);
    await first.kill();
    await runner.rollbackTransaction();
    await runner.release();
    expect(await grants()).toBe(MEMBERS - 1_000);
    expect(await queuedEndings(dataSource)).not.toEqual([]);
    expect(await issueToLeft()).toEqual({ denial: 'not_assigned' });

    const restarted = await startTestApp(argument);
    const started = performance.now();
    await vi.waitUntil(async () => (await queuedEndings(dataSource)).length === 0, SOON);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    process.stdout.write(`${MEMBERS - 1_000} left: ended ${seconds} s after the restart\n`);
    await restarted.close();

    expect(await grants()).toBe(0);
    expect(await count(dataSource, 'oauth_artifacts')).toBe(0);
    const recorded = (await endedEvents(dataSource)).map((event) => event.subject_id);
    expect(recorded.length).toBe(MEMBERS);
    expect(new Set(recorded).size).toBe(MEMBERS);
  }, 600_000);
});
