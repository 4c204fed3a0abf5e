import 'reflect-metadata';
import { createServer } from 'node:http';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { Client } from 'pg';
import {
  deleteExpired,
  EXPIRED_KINDS,
} from '../dist/domain/admin/clean-up/expired-rows.repository.js';
import { listDueReceivers } from '../dist/domain/oauth/shared-signals/event-queue.repository.js';
import { listDueClients } from '../dist/domain/oauth/logout-notices/notice-queue.repository.js';
import { NOTICE_QUEUES } from '../dist/domain/oauth/notice-watch/notice-queues.js';
import { noticeFigures } from '../dist/domain/oauth/notice-figures/notice-figures.repository.js';
import { cpuColumns, startCpuTime } from './cpu-time.js';
import { percentile, table } from './measure.js';
import { ratioOf } from './ratio.js';
import { ScimClient } from './scim-client.js';
import { startBenchServer } from './server.js';

/** The number of applications of a person, each with its own receiver or stream. */
const APPLICATIONS = 50;
/**
 * The number of undelivered logout notices (or events) in a full queue, and the number of
 * applications to which they belong.
 */
const UNDELIVERED = 100_000;
const AWAY = 50;
/** The number of clients that registered themselves and never answer a notice. */
const HANGING = 5000;
/**
 * The number of pairs of measurements (with an empty and a full queue), and how often a measurement
 * calls each function. A function that takes little time is called more often.
 */
const PAIRS = 6;
const ACTS = 25;
const SHORT_ACTS = 500;
/** How often a function is called before it is measured. */
const WARM_UP = 10;
/** The number of people who are deleted to measure how soon the receivers get their notices. */
const LEAVERS = 30;
/**
 * The bounds. MOST_RATIO is the largest accepted time with a full queue, as a multiple of that with
 * an empty queue. MOST_TOLD is the largest accepted number of milliseconds until a receiver gets
 * its notice.
 */
const MOST_RATIO = 1.2;
const MOST_TOLD = 1000;

/**
 * Measures back-channel logout and shared signals (security events that are sent to applications).
 * First it measures how soon 50 receivers get their logout tokens after a SCIM DELETE, alone and
 * beside 5,000 clients that never answer. Second it measures the CPU time of one notice and of one
 * event. Third it measures how much 100,000 undelivered notices, or events, slow down the clean-up,
 * the queries of the queue and a SCIM DELETE. The exit status is 1 if a bound is missed.
 */
export async function run() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const server = await startBenchServer(folder);
  const receivers = await startReceivers();
  const database = new Client(server.database);
  await database.connect();
  const misses = [];
  try {
    const ground = await prepare(server, database, receivers.origin);
    misses.push(...(await measureTelling(ground, receivers, 'alone')));
    await measureCpu(ground, receivers, NOTICES);
    misses.push(...(await measureUndelivered(ground, NOTICES)));
    await addStreams(ground);
    await measureCpu(ground, receivers, EVENTS);
    misses.push(...(await measureUndelivered(ground, EVENTS)));
    await database.query('DELETE FROM signal_streams');
    await addHanging(ground, receivers);
    misses.push(...(await measureTelling(ground, receivers, `beside ${HANGING} that hang`)));
  } finally {
    await database.end();
    await server.stop();
    await receivers.close();
    await rm(folder, { recursive: true, force: true });
  }
  for (const miss of misses) write(`MISSED ${miss}\n`);
  if (misses.length > 0) process.exitCode = 1;
}

/**
 * Starts one server for all receivers. It records the time of each request and answers 200, but
 * never answers at `/hang`.
 */
async function startReceivers() {
  const arrivals = [];
  let hanging = 0;
  const server = createServer((request, response) => {
    if (request.url === '/hang') {
      hanging += 1;
      return;
    }
    arrivals.push(performance.now());
    request.resume();
    response.writeHead(200).end();
  });
  await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    arrivals,
    hanging: () => hanging,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

/** Creates a SCIM token and the applications in the organization of the first person. */
async function prepare(server, database, origin) {
  const { baseUrl, tokens } = server;
  const answer = await fetch(`${baseUrl}/api/v1/org/scim-tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tokens[0]}`, 'content-type': 'application/json' },
    body: JSON.stringify({ description: 'bench' }),
  });
  if (!answer.ok) throw new Error(`scim-tokens: ${answer.status} ${await answer.text()}`);
  const { token } = await answer.json();
  const { rows } = await database.query('SELECT id, org_id FROM users ORDER BY created_at LIMIT 1');
  const [{ id: owner, org_id: org }] = rows;
  for (const [prefix, number, path] of [
    ['told', APPLICATIONS, '/told'],
    ['away', AWAY, '/hang'],
  ]) {
    await database.query(
      `INSERT INTO oauth_clients (id, kind, metadata, owner_id, org_id)
       SELECT $1 || '-' || n, 'application', jsonb_build_object('backchannel_logout_uri', $2::text), $3, $4
       FROM generate_series(1, $5::int) n`,
      [prefix, `${origin}${path}`, owner, org, number],
    );
  }
  return { server, database, scim: new ScimClient(`${baseUrl}/scim/v2`, token), origin };
}

let people = 0;

/**
 * Creates people by SCIM, and records that each has signed in to all applications. Returns their
 * ids.
 */
async function provision({ scim, database }, number) {
  const ids = [];
  for (let n = 0; n < number; n += 1) {
    people += 1;
    const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User'];
    const body = JSON.stringify({ schemas, userName: `leaver-${people}@signals.bench.example` });
    ids.push(JSON.parse(await scim.expect(201, 'POST', '/Users', body)).id);
  }
  await database.query(
    `INSERT INTO client_sign_ins (sid, client_id, user_id)
     SELECT gen_random_uuid(), 'told-' || n, p FROM unnest($1::uuid[]) p, generate_series(1, $2::int) n`,
    [ids, APPLICATIONS],
  );
  return ids;
}

/**
 * Deletes people by SCIM. Measures the time from the answer to a DELETE until the applications to
 * which the person had signed in get their notices.
 */
async function measureTelling(ground, { arrivals }, what) {
  const ids = await provision(ground, LEAVERS);
  const [each, all] = [[], []];
  for (const id of ids) {
    arrivals.length = 0;
    await ground.scim.expect(204, 'DELETE', `/Users/${id}`);
    const answered = performance.now();
    // Each application gets two notices: one that names the session, and one that names only the
    // person.
    while (arrivals.length < 2 * APPLICATIONS) await delay(1);
    const delays = arrivals.map((at) => Math.max(0, at - answered));
    each.push(...delays);
    all.push(Math.max(...delays));
  }
  const row = (name, samples) => ({
    [`${APPLICATIONS} receivers, ${what}`]: name,
    'p50 ms': percentile(samples, 0.5).toFixed(1),
    'p99 ms': percentile(samples, 0.99).toFixed(1),
  });
  write(`${table([row('a notice', each), row('the last one', all)])}\n\n`);
  const p99 = percentile(all, 0.99);
  return p99 > MOST_TOLD ? [`${APPLICATIONS} receivers, ${what}: told after ${p99} ms`] : [];
}

/**
 * The queue of logout tokens. `queue` adds rows that are sent at once, and `fill` adds rows that
 * wait for their next attempt. `due` is the query by which the service finds applications with rows
 * to send.
 */
const NOTICES = {
  what: 'a notice',
  table: 'logout_notices',
  undelivered: 'notices',
  queue: (database, number) =>
    database.query(
      `INSERT INTO logout_notices (client_id, self_registered, tenant_id, user_id, sid)
       SELECT 'told-' || (1 + n % $1::int), false, (SELECT org_id FROM oauth_clients WHERE id = 'told-1'), gen_random_uuid(), gen_random_uuid()
       FROM generate_series(1, $2::int) n`,
      [APPLICATIONS, number],
    ),
  empty: (database) => database.query("DELETE FROM logout_notices WHERE client_id LIKE 'away-%'"),
  fill: (database) =>
    database.query(
      `INSERT INTO logout_notices (client_id, self_registered, tenant_id, user_id, sid, next_attempt_at, tries, last_result)
       SELECT 'away-' || (1 + n % $1::int), false, (SELECT org_id FROM oauth_clients WHERE id = 'away-1'), gen_random_uuid(), gen_random_uuid(),
              now() + interval '1 hour', 9, 'no connection'
       FROM generate_series(1, $2::int) n`,
      [AWAY, UNDELIVERED],
    ),
  due: (manager) => listDueClients(manager, false),
};

/** The queue of security event tokens, with the same members as {@link NOTICES}. */
const EVENTS = {
  what: 'an event',
  table: 'signal_events',
  undelivered: 'events',
  queue: (database, number) =>
    database.query(
      `INSERT INTO signal_events (stream_id, subject_id, type)
       SELECT s.id, gen_random_uuid(), 'session-revoked'
       FROM (SELECT id, row_number() OVER (ORDER BY client_id) AS at FROM signal_streams WHERE client_id LIKE 'told-%') s
       JOIN generate_series(1, $2::int) n ON s.at = 1 + n % $1::int`,
      [APPLICATIONS, number],
    ),
  empty: (database) =>
    database.query(
      "DELETE FROM signal_events WHERE stream_id IN (SELECT id FROM signal_streams WHERE client_id LIKE 'away-%')",
    ),
  fill: (database) =>
    database.query(
      `INSERT INTO signal_events (stream_id, subject_id, type, next_attempt_at, tries, last_result)
       SELECT s.id, gen_random_uuid(), 'session-revoked', now() + interval '1 hour', 9, 'no connection'
       FROM (SELECT id, row_number() OVER (ORDER BY client_id) AS at FROM signal_streams WHERE client_id LIKE 'away-%') s
       JOIN generate_series(1, $2::int) n ON s.at = 1 + n % $1::int`,
      [AWAY, UNDELIVERED],
    ),
  due: listDueReceivers,
};

/** Gives each application a stream of events that the service pushes to it (RFC 8935). */
async function addStreams({ database, origin }) {
  await database.query(
    `WITH allowed AS (
       INSERT INTO signal_receivers (client_id, subject_format)
       SELECT id, 'iss_sub' FROM oauth_clients WHERE id LIKE 'told-%' OR id LIKE 'away-%' RETURNING client_id
     )
     INSERT INTO signal_streams (id, client_id, org_id, method, endpoint_url, events)
     SELECT gen_random_uuid(), c.id, c.org_id, 'push', $1 || CASE WHEN c.id LIKE 'away-%' THEN '/hang' ELSE '/told' END,
            '{session-revoked,account-purged}'
     FROM allowed a JOIN oauth_clients c ON c.id = a.client_id`,
    [origin],
  );
}

/**
 * Measures the CPU time of sending one row of a queue. The rows are inserted by SQL, so that the
 * service does no work to make them.
 */
async function measureCpu({ server, database }, { arrivals }, { what, queue }) {
  const number = 5000;
  arrivals.length = 0;
  const cpu = startCpuTime(server.pid);
  await queue(database, number);
  const started = performance.now();
  while (arrivals.length < number) await delay(5);
  const seconds = (performance.now() - started) / 1000;
  const row = { [what]: `${(number / seconds).toFixed(0)} a second` };
  write(`${table([{ ...row, ...cpuColumns(cpu(), number) }])}\n\n`);
}

/** Measures alternately with an empty queue and with a queue of 100,000 undelivered rows. */
async function measureUndelivered(ground, queue) {
  const source = new DataSource({
    type: 'postgres',
    host: ground.server.database.host,
    username: ground.server.database.user,
    database: ground.server.database.database,
  });
  await source.initialize();
  const samples = {};
  try {
    const acts = actsOn(ground, source.manager, queue);
    for (let pair = 0; pair < PAIRS; pair += 1) {
      const turns = pair % 2 === 0 ? [false, true] : [true, false];
      const measured = {};
      for (const isFull of turns) {
        await fill(ground.database, queue, isFull);
        measured[isFull] = await turn(acts);
      }
      for (const what of Object.keys(acts)) {
        samples[what] = [...(samples[what] ?? []), [measured.false[what], measured.true[what]]];
      }
    }
    await fill(ground.database, queue, false);
  } finally {
    await source.destroy();
  }
  return printRatios(samples, queue);
}

/**
 * Prints the ratios of the times with a full queue to those with an empty one. Returns the bounds
 * that are missed.
 */
function printRatios(samples, { undelivered }) {
  const rows = Object.entries(samples).map(([what, pairs]) => ({ what, ...ratioOf(pairs), pairs }));
  const mean = (values) => (values.reduce((a, b) => a + b) / values.length).toFixed(2);
  write(
    `${table(
      rows.map(({ what, ratio, low, high, pairs }) => ({
        [`${UNDELIVERED} undelivered ${undelivered}`]: what,
        'empty ms': mean(pairs.map(([empty]) => empty)),
        'full ms': mean(pairs.map(([, full]) => full)),
        ratio: ratio.toFixed(2),
        '95 %': `${low.toFixed(2)}-${high.toFixed(2)}`,
      })),
    )}\n\n`,
  );
  // The function FIGURES counts the rows of the queues for the metrics. It has no bound, because
  // its time grows with the queue, and the service calls it only once a minute.
  return rows
    .filter(({ what, ratio }) => what !== FIGURES && ratio > MOST_RATIO)
    .map(({ what, ratio }) => `${undelivered}, ${what}: ${ratio.toFixed(2)} times as long`);
}

const FIGURES = 'the figures';

/** Returns the functions that are measured, by name. */
function actsOn(ground, manager, { due }) {
  const leavers = [];
  return {
    'clean-up': {
      async act() {
        for (const kind of EXPIRED_KINDS) {
          await deleteExpired(manager, kind, 1000, { auth: 400, oauth: 400 });
        }
      },
    },
    'the list of applications due': { times: SHORT_ACTS, act: () => due(manager) },
    'SCIM DELETE': {
      before: async () => leavers.push(...(await provision(ground, ACTS))),
      act: () => ground.scim.expect(204, 'DELETE', `/Users/${leavers.pop()}`),
      after: () => allSent(ground.database),
    },
    [FIGURES]: { act: () => noticeFigures(manager, NOTICE_QUEUES, 'all') },
  };
}

/**
 * Calls each function as often as its `times` says, and returns the median time of each in
 * milliseconds, by name.
 */
async function turn(acts) {
  const medians = {};
  for (const [what, { before, times = ACTS, act, after }] of Object.entries(acts)) {
    await before?.();
    if (!before) await warmUp(act);
    const samples = [];
    for (let n = 0; n < times; n += 1) {
      const started = performance.now();
      await act();
      samples.push(performance.now() - started);
    }
    await after?.();
    medians[what] = percentile(samples, 0.5);
  }
  return medians;
}

/**
 * Calls a function without measuring it, because PostgreSQL plans the statements again after the
 * queue was filled.
 */
async function warmUp(act) {
  for (let n = 0; n < WARM_UP; n += 1) await act();
}

/**
 * Waits until no row of a queue is due. Otherwise the next function would be measured while the
 * service still sends the rows of an earlier function.
 */
async function allSent(database) {
  const isDue = (queue) =>
    `EXISTS (SELECT FROM ${queue.table} WHERE next_attempt_at < now() + interval '1 minute')`;
  const text = `SELECT ${isDue(NOTICES)} OR ${isDue(EVENTS)} AS due`;
  while ((await database.query(text)).rows[0].due) await delay(20);
}

/** Fills a queue with rows that wait for their next attempt, or empties it. */
async function fill(database, queue, isFull) {
  await queue.empty(database);
  if (isFull) await queue.fill(database);
  await database.query(`VACUUM ANALYZE ${queue.table}`);
  // Otherwise a measured function could wait for the disk writes of the filling.
  await database.query('CHECKPOINT');
}

/**
 * Makes clients that registered themselves and never answer. Each has a notice about another
 * person.
 */
async function addHanging({ database, origin }, { hanging }) {
  await database.query(
    `WITH made AS (
       INSERT INTO oauth_clients (id, kind, metadata)
       SELECT 'self-' || n, 'dynamic', jsonb_build_object('backchannel_logout_uri', $1::text)
       FROM generate_series(1, $2::int) n RETURNING id
     )
     INSERT INTO logout_notices (client_id, self_registered, user_id) SELECT id, true, gen_random_uuid() FROM made`,
    [`${origin}/hang`, HANGING],
  );
  while (hanging() === 0) await delay(5);
}

const write = (text) => process.stdout.write(text);
