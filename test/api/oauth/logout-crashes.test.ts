import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { Client as Database } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runScript, type ChildScript } from '../../support/child-script.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { endLeases, roundsUntilDeath, SENDING_STEPS, SLOW } from '../../support/dying-rounds.js';
import { startLogoutReceiver, type LogoutReceiver } from '../../support/logout-receiver.js';
import type { ReplicaAnswer, ReplicaArgument } from '../../support/replica.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';
import '../../support/full-scale-only.js';

/**
 * The number of clients that get a notice: more than one replica can serve at once, so that both
 * send.
 */
const CLIENTS = 20;

describe('of two replicas, of which one is killed with SIGKILL', () => {
  let database: TestDatabase;
  let observer: Database;
  let receiver: LogoutReceiver;
  let folder: string;
  let survivor: ChildScript<ReplicaAnswer>;
  let argument: ReplicaArgument;

  beforeAll(async () => {
    database = await createTestDatabase();
    observer = new Database({ connectionString: database.url });
    await observer.connect();
    receiver = await startLogoutReceiver();
    folder = await makeTemporaryDirectory();
    const environment = { SVC_SSH_CA_KEY_PATH: join(folder, 'ssh_ca_key') };
    argument = { database: { url: database.url }, environment };
    survivor = runScript<ReplicaAnswer>('replica.ts', argument);
    await survivor.answer;
    await observer.query(
      `INSERT INTO oauth_clients (id, kind, metadata)
       SELECT 'told-' || n, 'first-party', jsonb_build_object('backchannel_logout_uri', $1::text)
       FROM generate_series(1, $2::int) n`,
      [receiver.uri, CLIENTS],
    );
  });
  afterAll(async () => {
    await survivor.finish();
    await receiver.close();
    await observer.end();
    await database.drop();
    await removeDirectory(folder);
  });

  /** Queues a notice for each client in one transaction. Returns the ids of their users. */
  async function queue(): Promise<string[]> {
    const { rows } = await observer.query<{ user_id: string }>(
      `INSERT INTO logout_notices (client_id, self_registered, user_id)
       SELECT 'told-' || n, false, gen_random_uuid() FROM generate_series(1, $1::int) n
       RETURNING user_id`,
      [CLIENTS],
    );
    return rows.map((row) => row.user_id);
  }
  const waiting = async () =>
    (await observer.query('SELECT FROM logout_notices')).rowCount ?? Number.NaN;
  const told = () => receiver.received.map(({ token }) => decodeJwt(token).sub ?? '');

  it.each(SENDING_STEPS)(
    'with a notice %s, the other one tells every end, once or at most %i times',
    async (step, most) => {
      receiver.received.splice(0);
      receiver.answer = () => (step === 'connected' ? 'hang' : 200);
      const users: string[] = [];
      await roundsUntilDeath(
        { ...argument, step },
        {
          queue: async () => void users.push(...(await queue())),
          waiting,
          received: () => receiver.received.length,
        },
      );
      receiver.answer = () => 200;
      await endLeases(async (text) => (await observer.query<object>(text)).rows, 'logout_notices');
      await expect.poll(waiting, SLOW).toBe(0);
      const times = Map.groupBy(told(), (sub) => sub);
      expect([...times.keys()].toSorted()).toEqual(users.toSorted());
      const counts = [...times.values()].map((all) => all.length);
      expect(Math.max(...counts)).toBeLessThanOrEqual(most);
    },
    150_000,
  );
});
