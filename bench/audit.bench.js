import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { Client } from 'pg';
import { cpuColumns } from './cpu-time.js';
import { measureTurn, percentile, table } from './measure.js';
import { fillEvents } from './pages-data.js';
import { startBenchServer } from './server.js';
import { SSH_SCENARIOS } from './ssh.bench.js';

const THIS_TREE = dirname(import.meta.dirname);

/** The seconds of each measurement, and of the load before and after a month is dropped. */
const SECONDS = 8;
const WARM_UP_SECONDS = 3;

/** The longest accepted time of a request while a month is dropped, in milliseconds. */
const LONGEST = 1_000;

/**
 * The largest accepted CPU time of a certificate in this tree, as a multiple of that in the other
 * version.
 */
const MOST_RATIO = 1.1;

/**
 * Drops one month of the audit log, as the clean-up does. `$1` is the number of older months that
 * are skipped.
 */
const DROP = `SELECT drop_audit_month(m.class, m.month, 0) AS done
  FROM (SELECT class, month FROM audit_months() WHERE class = 'oauth' ORDER BY month OFFSET $1 LIMIT 1) m`;

/**
 * Measures the CPU time and the bytes of write-ahead log (WAL) that one SSH certificate takes. It
 * does so with an empty audit log, and with a large audit log. Each certificate writes an audit
 * row. Each measurement begins after a checkpoint of PostgreSQL. After a checkpoint, the first
 * change of a page writes the whole page to the WAL, so that these pages are measured, too. Then a
 * month is dropped while 32 clients ask for certificates. The exit status is 1 if a bound is
 * missed.
 *
 * @param events the number of audit events
 * @param base a built checkout of another version, with which the certificate is compared
 */
export async function run(events = '5000000', base) {
  const log = { events: Number(events), what: `${Number(events).toLocaleString('en-US')} events` };
  const earlier = base && (await measureTree(resolve(base), log));
  const own = await measureTree(THIS_TREE, log, measureDrop);
  const rows = [...(earlier?.measured ?? []), ...own.measured].map(({ row }) => row);
  process.stdout.write(`${table(rows)}\n\n${table([own.after.row])}\n\n`);
  const ratios = earlier?.measured.map(({ cpu }, n) => own.measured[n].cpu / cpu) ?? [];
  process.stdout.write(
    `CPU time to that of the other version: ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}` +
      `; bounds: ${MOST_RATIO}, longest request ${LONGEST} ms\n`,
  );
  if (Math.max(0, ...ratios) > MOST_RATIO || own.after.longest > LONGEST) process.exitCode = 1;
}

/**
 * Measures the server of a checkout with an empty audit log, and then with many events. A function
 * in `further` measures something else on the full log.
 */
async function measureTree(tree, { events, what }, further) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const server = await startBenchServer(folder, {}, tree);
  const client = new Client(server.database);
  try {
    await client.connect();
    const name = basename(tree);
    const empty = await measureAll(server, client, `${name}, no events`);
    await fillEvents(server.database, events);
    const large = await measureAll(server, client, `${name}, ${what}`);
    return { measured: [...empty, ...large], after: await further?.(server, client) };
  } finally {
    await client.end();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Measures the CPU time and the WAL bytes of SSH certificates with one client, and then with 32.
 */
async function measureAll(server, client, what) {
  const measured = [];
  for (const scenario of SSH_SCENARIOS) {
    await client.query('CHECKPOINT');
    const before = await wal(client);
    const turn = await measureTurn(
      server.pid,
      { open: () => scenario.open(server), sleeps: true },
      { seconds: SECONDS, warmUpSeconds: WARM_UP_SECONDS },
    );
    const bytes = (await wal(client)) - before;
    const row = {
      what,
      scenario: scenario.what,
      ...cpuColumns(turn, turn.latencies.length),
      'WAL bytes': (bytes / turn.acts).toFixed(0),
      'p99 ms': percentile(turn.latencies, 0.99).toFixed(1),
    };
    measured.push({ row, cpu: (turn.server + turn.postgres) / turn.latencies.length });
  }
  return measured;
}

/**
 * Returns the position at which the write-ahead log ends. The difference of two positions is the
 * number of bytes that were written between them.
 */
async function wal(client) {
  const { rows } = await client.query(
    `SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS bytes`,
  );
  return rows[0].bytes;
}

/**
 * Drops a month of events while 32 clients ask for certificates. The month is the second oldest
 * one, because the oldest one is not full.
 */
async function measureDrop(server, client) {
  const [, { open }] = SSH_SCENARIOS;
  const { rows: months } = await client.query(
    `SELECT relation, pg_total_relation_size(relation::regclass)::float8 AS bytes
     FROM audit_months() WHERE class = 'oauth' ORDER BY month OFFSET 1 LIMIT 1`,
  );
  const { rows: counts } = await client.query(
    `SELECT count(*)::int AS n FROM ${months[0].relation}`,
  );
  await client.query(`SET lock_timeout = '200ms'`);
  const state = { tries: 0, milliseconds: 0 };
  const dropping = async () => {
    await new Promise((go) => setTimeout(go, (SECONDS / 2) * 1000));
    const begun = performance.now();
    for (;;) {
      state.tries += 1;
      const done = await client.query(DROP, [1]).catch(({ code }) => {
        if (code !== '55P03') throw new Error(`the drop failed: ${code}`);
      });
      if (done?.rows[0].done === true) break;
    }
    state.milliseconds = performance.now() - begun;
  };
  const [turn] = await Promise.all([
    measureTurn(server.pid, { open: () => open(server), sleeps: true }, { seconds: SECONDS }),
    dropping(),
  ]);
  const longest = Math.max(...turn.latencies);
  const row = {
    'dropped rows': counts[0].n.toLocaleString('en-US'),
    MiB: (months[0].bytes / 2 ** 20).toFixed(0),
    tries: state.tries,
    'drop ms': state.milliseconds.toFixed(0),
    'certificates meanwhile': turn.latencies.length.toLocaleString('en-US'),
    'p50 ms': percentile(turn.latencies, 0.5).toFixed(1),
    'p99 ms': percentile(turn.latencies, 0.99).toFixed(1),
    'longest ms': longest.toFixed(0),
  };
  return { row, longest };
}
