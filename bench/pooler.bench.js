import { cpuColumns, startCpuTime } from './cpu-time.js';
import { onDebianPostgres } from './debian-server.js';
import { measureTurn, percentile, table } from './measure.js';
import { clientsOf } from './ssh.bench.js';

const { startPgBouncerTo } = await import('../test/support/pgbouncer.ts');

const SECONDS = 10;
const WARM_UP_SECONDS = 3;
const CLIENTS = 8;

/**
 * The ways from the service to PostgreSQL. Each returns the settings of the service, and the
 * process id of the pooler if there is one.
 */
const WAYS = {
  'PostgreSQL itself, named statements': () => ({ settings: {} }),
  'PostgreSQL itself, statements without a name': (postgres) => {
    const url = postgres.url('svc', 'svc');
    return { settings: pooled('transaction', url, url) };
  },
  'PgBouncer in transaction mode, statements without a name': async (postgres, parts) => {
    const bouncer = await startPgBouncerTo(parts, { port: postgres.port, user: 'svc' });
    const settings = pooled('transaction', bouncer.url('svc'), postgres.url('svc', 'svc'));
    return { settings, pid: bouncer.pid };
  },
};

function pooled(kind, url, direct) {
  return {
    SVC_DATABASE_POOLER: kind,
    SVC_DATABASE_URL: url,
    SVC_DATABASE_DIRECT_URL: direct,
  };
}

/**
 * Measures the CPU time of an SSH certificate in three ways: on PostgreSQL itself, with statements
 * without a name, and behind PgBouncer in transaction mode. The second and the third are printed as
 * ratios to the first one.
 */
export async function run() {
  const rows = [];
  let first;
  for (const [way, settingsOf] of Object.entries(WAYS)) {
    const turn = await measured(settingsOf);
    const together = (turn.server + turn.postgres + turn.pooler) / turn.latencies.length;
    first ??= together;
    rows.push({
      way,
      ...cpuColumns({ server: turn.server, postgres: turn.postgres }, turn.latencies.length),
      'pooler µs': ((turn.pooler * 1e6) / turn.latencies.length).toFixed(0),
      'p50 ms': percentile(turn.latencies, 0.5).toFixed(1),
      ratio: (together / first).toFixed(2),
    });
  }
  process.stdout.write(
    `${table(rows)}\n\n${CLIENTS} clients, ${SECONDS} s each; ratio: CPU of server, PostgreSQL and pooler together\n`,
  );
}

async function measured(settingsOf) {
  const parts = new AsyncDisposableStack();
  const way = {};
  let turn;
  await onDebianPostgres(
    async ({ server, postgres }) => {
      const work = { open: () => clientsOf(server).slice(0, CLIENTS), sleeps: true };
      await measureTurn(server.pid, work, { seconds: WARM_UP_SECONDS });
      const others = [postgres.pid, way.pid].map((pid) => (pid ? startCpuTime(pid) : () => NONE));
      turn = await measureTurn(server.pid, work, { seconds: SECONDS });
      const [ofPostgres, ofPooler] = others.map((end) => end());
      turn.postgres = ofPostgres.server + ofPostgres.postgres;
      turn.pooler = ofPooler.server + ofPooler.postgres;
    },
    async (postgres) => Object.assign(way, await settingsOf(postgres, parts)).settings,
  );
  await parts.disposeAsync();
  return turn;
}

const NONE = { server: 0, postgres: 0 };
