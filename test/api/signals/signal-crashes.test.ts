import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { runScript } from '../../support/child-script.js';
import { newAddress } from '../../support/client.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import type { DyingArgument, DyingStep } from '../../support/dying-replica.js';
import { endLeases, roundsUntilDeath, SENDING_STEPS, SLOW } from '../../support/dying-rounds.js';
import { startLogoutReceiver, type LogoutReceiver } from '../../support/logout-receiver.js';
import type { ReplicaAnswer, ReplicaArgument } from '../../support/replica.js';
import { count, rows } from '../../support/rows.js';
import { SCALE } from '../../support/scale.js';
import { foundOrganization } from '../../support/scim-organization.js';
import { claimsOf, eventOf, startSignalReceiver } from '../../support/signal-receiver.js';
import type { SignalReceiver } from '../../support/signal-receiver.js';
import { createStream, newProgram, poll, signalsOf } from '../../support/signal-streams.js';
import { signInTo } from '../../support/signed-in-application.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';
import '../../support/full-scale-only.js';

/** The number of streams, each of another organization: so many that both replicas send. */
const STREAMS = 20;
/** The number of events about each user in a round. */
const EVENTS = 2;

let database: TestDatabase;
let folder: string;
let argument: ReplicaArgument;
let receiver: SignalReceiver;
/** Receives the logout tokens of the test. */
let logouts: LogoutReceiver;
/** The replica that is not killed. */
let app: TestApp;

beforeAll(async () => {
  database = await createTestDatabase();
  receiver = await startSignalReceiver();
  logouts = await startLogoutReceiver();
  folder = await makeTemporaryDirectory();
  const environment = { SVC_SSH_CA_KEY_PATH: join(folder, 'ssh_ca_key') };
  app = await startTestApp({ database, environment });
  argument = { database: { url: database.url }, environment };
  argument = { ...argument, environment: { ...environment, SVC_BASE_URL: app.baseUrl } };
});
afterAll(async () => {
  await app.close();
  await receiver.close();
  await logouts.close();
  await database.drop();
  await removeDirectory(folder);
});
beforeEach(() => {
  receiver.received.splice(0);
  receiver.answer = () => 202;
});

/**
 * Inserts streams that are pushed to the receiver, each of another application and organization.
 */
function addStreams(): Promise<object[]> {
  return rows(
    app.dataSource,
    `WITH clients AS (
       INSERT INTO oauth_clients (id, kind, metadata)
       SELECT 'told-' || n, 'first-party', '{}' FROM generate_series(1, $2::int) n RETURNING id
     ), allowed AS (
       INSERT INTO signal_receivers (client_id, subject_format) SELECT id, 'iss_sub' FROM clients RETURNING client_id
     )
     INSERT INTO signal_streams (id, client_id, org_id, method, endpoint_url, events)
     SELECT gen_random_uuid(), client_id, gen_random_uuid(), 'push', $1, '{}' FROM allowed`,
    [receiver.uri, STREAMS],
  );
}

/** Queues events about a new user id for each stream. Returns the user ids. */
async function queue(): Promise<string[]> {
  const queued = await rows<{ subject_id: string }>(
    app.dataSource,
    `INSERT INTO signal_events (stream_id, subject_id, type, body)
     SELECT p.stream_id, p.subject_id, 'session-revoked', jsonb_build_object('number', n)
     FROM (SELECT id AS stream_id, gen_random_uuid() AS subject_id FROM signal_streams WHERE method = 'push' OFFSET 0) p,
          generate_series(1, $1::int) n
     ORDER BY n RETURNING subject_id`,
    [EVENTS],
  );
  return [...new Set(queued.map((row) => row.subject_id))];
}

const waiting = () => count(app.dataSource, 'signal_events');

/** Returns what the receiver got about each user: the number and the token id of each event. */
function heard(): Map<string, { readonly number: number; readonly jti: string | undefined }[]> {
  const all = receiver.received.map(({ claims }) => {
    const { sub } = claims['sub_id'] as { sub: string };
    const [{ number }] = Object.values(claims['events'] as object) as [{ number: number }];
    return { sub, number, jti: claims.jti };
  });
  return Map.groupBy(all, ({ sub }) => sub);
}

/** Starts a replica that kills itself at a step, and sends it a request, which gets no response. */
async function dieAt(
  step: DyingStep,
  path: string,
  init: { readonly method: string; readonly token: string; readonly body?: object },
): Promise<void> {
  const dying: DyingArgument = { ...argument, step };
  const replica = runScript<ReplicaAnswer>('dying-replica.ts', dying);
  const { baseUrl } = await replica.answer;
  const { method, token, body } = init;
  const sent = request(new URL(path, baseUrl), {
    method,
    headers: {
      host: new URL(app.baseUrl).host, // the host of the service, which both replicas serve
      authorization: `Bearer ${token}`,
      'x-forwarded-for': newAddress(),
      ...(body && { 'content-type': 'application/json' }),
    },
  });
  const answered = once(sent, 'response');
  sent.end(body && JSON.stringify(body));
  await expect(answered).rejects.toThrow('socket hang up');
  await replica.gone;
  expect(replica.signal()).toBe('SIGKILL');
}

describe('of two replicas, of which one is killed with SIGKILL', () => {
  beforeAll(addStreams);
  afterAll(() => rows(app.dataSource, "DELETE FROM oauth_clients WHERE id LIKE 'told-%'"));

  it.each(SENDING_STEPS)(
    'with an event %s, the other one tells every event in order, once or at most %i times, with one id',
    async (step, most) => {
      if (step === 'connected') receiver.answer = () => 'hang';
      const people: string[] = [];
      await roundsUntilDeath(
        { ...argument, step },
        {
          queue: async () => void people.push(...(await queue())),
          waiting,
          received: () => receiver.received.length,
        },
      );
      const diedAt = performance.now();
      receiver.answer = () => 202;
      // Ends the leases of the dead replica. At full scale one step waits until they expire.
      if (step !== 'connected' || SCALE === 'small') {
        await endLeases((text) => rows(app.dataSource, text), 'signal_events');
      }
      await expect.poll(waiting, SLOW).toBe(0);
      expect(performance.now() - diedAt).toBeLessThan(30_000);
      const told = heard();
      expect([...told.keys()].toSorted()).toEqual(people.toSorted());
      for (const events of told.values()) {
        const numbers = events.map(({ number }) => number);
        expect(numbers).toEqual(numbers.toSorted());
        const byNumber = Map.groupBy(events, ({ number }) => number);
        expect([...byNumber.keys()]).toEqual([1, 2]);
        expect(new Set(events.map(({ jti }) => jti)).size).toBe(EVENTS);
        for (const tries of byNumber.values()) {
          expect(new Set(tries.map(({ jti }) => jti)).size).toBe(1);
          expect(tries.length).toBeLessThanOrEqual(most);
        }
      }
    },
    150_000,
  );
});

describe('a replica that is killed with SIGKILL', () => {
  it('before the commit of a SCIM DELETE tells nothing, and the repeated DELETE tells all', async () => {
    const domain = 'crashes.example';
    const org = await foundOrganization(app, domain);
    const program = await newProgram(app, org.admin.client);
    const streamId = await createStream(program, receiver.uri);
    await rows(
      app.dataSource,
      `UPDATE oauth_clients SET metadata = metadata || jsonb_build_object('backchannel_logout_uri', $1::text) WHERE id = $2`,
      [logouts.uri, program.application.clientId],
    );
    const made = await org.scim('POST', '/Users', {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: `bob@${domain}`,
    });
    const { id } = made.json as { id: string };
    const { client } = await app.enrolled(`bob@${domain}`);
    await signInTo(app, client, program.application);
    await dieAt('written', `/scim/v2/Users/${id}`, { method: 'DELETE', token: org.token });
    expect((await org.scim('GET', `/Users/${id}`)).status).toBe(200);
    expect(await count(app.dataSource, 'logout_notices')).toBe(0);
    expect(await signalsOf(app, streamId)).toEqual([]);
    expect([receiver.received, logouts.received]).toEqual([[], []]);

    expect((await org.scim('DELETE', `/Users/${id}`)).status).toBe(204);
    await expect.poll(() => count(app.dataSource, 'logout_notices')).toBe(0);
    await expect.poll(() => signalsOf(app, streamId)).toEqual([]);
    expect(receiver.received.map(({ claims }) => eventOf(claims))).toEqual([
      'session-revoked',
      'account-purged',
    ]);
    // One logout token names the session, and the other names the user alone.
    expect(logouts.received).toHaveLength(2);
  });

  it.each<readonly [DyingStep, readonly number[]]>([
    ['polled', [1, 2, 3]],
    ['acknowledged', [2, 3]],
  ])(
    'with a poll %s: the next poll of another replica has every event that was not acknowledged',
    async (step, left) => {
      const domain = `${step}.example`;
      const { client } = await app.enrolled(`ada@${domain}`);
      const program = await newProgram(app, client);
      const streamId = await createStream(program);
      await rows(
        app.dataSource,
        `INSERT INTO signal_events (stream_id, subject_id, type, body)
         SELECT $1, $2, 'session-revoked', jsonb_build_object('number', n) FROM generate_series(1, 3) n`,
        [streamId, randomUUID()],
      );
      const first = await poll(program, streamId);
      const [jti = ''] = Object.keys(first.sets);
      const body = { returnImmediately: true, ...(step === 'acknowledged' && { ack: [jti] }) };
      const { token } = program;
      await dieAt(step, `/ssf/poll/${streamId}`, { method: 'POST', token, body });
      const second = await poll(program, streamId, body);
      const numbers = Object.values(second.sets).map(
        (set) => (Object.values(claimsOf(set)['events'] as object)[0] as { number: number }).number,
      );
      expect(numbers).toEqual(left);
      // An event that the first poll returned has the same token in the second.
      for (const [id, set] of Object.entries(second.sets)) expect(first.sets[id]).toBe(set);
      await poll(program, streamId, { maxEvents: 0, ack: Object.keys(second.sets) });
      expect(await signalsOf(app, streamId)).toEqual([]);
    },
    60_000,
  );
});
