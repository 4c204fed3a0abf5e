import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { percentile, table } from './measure.js';
import { RawClient } from './raw-client.js';
import { startBenchServer } from './server.js';
import { makeCaKey } from './ssh.bench.js';
import { UpgradeData } from './upgrade-data.js';

const exec = promisify(execFile);
const THIS_TREE = dirname(import.meta.dirname);

/** The commit of version 0.9.0. */
const EARLIER = 'e952189';

/** The number of users. Each has 20 audit rows, so that there are 1,000,000 audit rows. */
const USERS = 50_000;
const ISSUERS = 4;
const READERS = 2;

/**
 * The largest number of database connections: `earlier` for the server of 0.9.0, and `upgraded` for
 * each server of this version. All servers share the database that the server of 0.9.0 starts. It
 * admits 10 connections more than that server uses.
 */
const CONNECTIONS = { earlier: '90', upgraded: '15' };

/** The longest accepted time without an issued certificate, in milliseconds. */
const LONGEST_PAUSE = 1_000;

/** Milliseconds without an issued certificate after which the state of the database is printed. */
const LONG_PAUSE = 500;

/** The longest wait for the indexes and the rows of the audit log, in milliseconds. */
const PATIENCE = 3_600_000;

/**
 * Upgrades a database of 0.9.0 with 1,000,000 audit rows while a server of 0.9.0 issues
 * certificates. A first server of this version is killed in the middle of its migrations. Then
 * three start at the same time. The benchmark fails if a server answers 5xx, or if no certificate
 * is issued for more than 1 s.
 *
 * @param base a built checkout of 0.9.0; by default it is built from the history of git
 * @param users the number of users; a smaller one is for a trial
 */
export async function run(base, users = String(USERS)) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const earlier = base === undefined || base === '-' ? await build(folder) : resolve(base);
  const caFile = await makeCaKey(folder);
  const environment = { SVC_SSH_CA_KEY_PATH: caFile };
  const settings = { ...environment, SVC_DB_MAX_CONNECTIONS: CONNECTIONS.earlier };
  const old = await startBenchServer(folder, settings, earlier);
  const data = new UpgradeData(old.database);
  const replicas = [];
  let watch;
  try {
    await data.open();
    await fill(data, old.database, earlier, Number(users));
    const load = new Load(old);
    watch = watchPauses(load, data);
    await delay(5_000);
    const before = load.take();
    const { host, user, database } = old.database;
    const url = `postgres://${user}@/${database}?host=${encodeURIComponent(host)}`;
    const upgraded = {
      ...environment,
      SVC_DATABASE_URL: url,
      SVC_DB_MAX_CONNECTIONS: CONNECTIONS.upgraded,
    };
    const start = async (_, place) => {
      const server = await startBenchServer(folder, upgraded, THIS_TREE, 0);
      replicas.push(server);
      load.join({
        ...old,
        baseUrl: server.baseUrl,
        tokens: old.tokens.slice(ISSUERS * (place + 1)),
      });
    };
    const begun = performance.now();
    const killed = await killInTheMiddle(upgraded, folder, data);
    await Promise.all([1, 2, 3].map(start));
    const started = performance.now();
    await untilComplete(data);
    const completed = performance.now();
    const during = load.take();
    await delay(2_000);
    const after = await load.stop();
    report({ before, during, after });
    process.stdout.write(
      `\n${killed} addresses were there when the first server was killed; three servers were ready after ${seconds(started - begun)}, all indexes after ${seconds(completed - begun)}\n`,
    );
    assertServed([before, during, after]);
  } finally {
    await watch?.stop();
    await data.close().catch(() => undefined);
    for (const server of [...replicas, old]) await server.stop();
    await rm(folder, { recursive: true, force: true });
    if (earlier.startsWith(folder)) await exec('git', ['worktree', 'prune'], { cwd: THIS_TREE });
  }
}

const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(1)} s`;

/**
 * Checks out version 0.9.0 and builds it with its own packages, because this tree has other
 * packages.
 */
async function build(folder) {
  const tree = join(folder, 'earlier');
  await exec('git', ['worktree', 'add', '--detach', tree, EARLIER], { cwd: THIS_TREE });
  await exec('npm', ['ci', '--no-audit', '--no-fund'], { cwd: tree });
  await exec('npm', ['run', '-s', 'build'], { cwd: tree });
  return tree;
}

/**
 * Fills the database by the benchmark of 0.9.0, which knows its tables, and adds the rows that the
 * migrations change.
 */
async function fill(data, database, earlier, users) {
  const { MillionData } = await import(join(earlier, 'bench', 'million-data.js'));
  const million = new MillionData(database);
  await million.begin();
  await million.grow(users);
  await data.fill();
  process.stderr.write(`${await data.count('audit_events')} audit rows\n`);
}

/**
 * Starts a server, and kills its process while a migration changes many rows.
 * @returns the number of rows that it had changed
 */
async function killInTheMiddle(environment, folder, data) {
  const child = fork(join(THIS_TREE, 'bench', 'server-process.js'), [folder, '0'], {
    cwd: THIS_TREE,
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit');
  while (!(await data.isInTheMiddle())) {
    if (child.exitCode !== null) throw new Error('the server ended before it was killed');
    await delay(5);
  }
  child.kill('SIGKILL');
  await ended;
  return data.count('record_addresses');
}

/**
 * Waits until the background migrations have built all indexes. A start does not wait for these
 * indexes.
 */
async function untilComplete(data) {
  const files = await readdir(join(THIS_TREE, 'migrations'));
  const end = performance.now() + PATIENCE;
  for (;;) {
    const { migrations, invalid } = await data.state();
    if (migrations === files.length && invalid === 0) return;
    if (performance.now() > end) throw new Error(`${migrations} of ${files.length} migrations`);
    await delay(50);
  }
}

function clientsAt({ baseUrl, tokens, publicKeyLine }, count) {
  return tokens.slice(0, count).map(
    (token) =>
      new RawClient(`${baseUrl}/v1/credentials/ssh`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ public_key: publicKeyLine }),
      }),
  );
}

function readersAt({ baseUrl, tokens }, count) {
  return tokens.slice(0, count).map(
    (token) =>
      new RawClient(`${baseUrl}/v1/keys`, {
        method: 'GET',
        headers: { authorization: `Bearer ${token}` },
      }),
  );
}

/** Prints what the database does each time that no certificate was issued for more than 500 ms. */
function watchPauses(load, data) {
  const state = { isStopped: false };
  const ended = (async () => {
    while (!state.isStopped) {
      const pause = load.pauseSoFar();
      if (pause > LONG_PAUSE) {
        const activity = await data.activity();
        process.stderr.write(
          `no certificate for ${pause.toFixed(0)} ms\n  ${activity.join('\n  ')}\n`,
        );
      }
      await delay(100);
    }
  })();
  return {
    stop() {
      state.isStopped = true;
      return ended.catch(() => undefined);
    },
  };
}

/**
 * The load during the upgrade: clients of the server of 0.9.0 repeat requests for certificates and
 * for lists of keys without a pause. Each server of this version gets requests for certificates as
 * soon as it listens.
 */
class Load {
  #stopped = false;
  #since = performance.now();
  #lastIssued = performance.now();
  #seen = emptyCounts();
  #clients = [];

  constructor(server) {
    for (const client of clientsAt(server, ISSUERS)) this.#begin(client, 'issued');
    for (const client of readersAt(server, READERS)) this.#begin(client, 'read');
  }

  /** Begins to request certificates from a server of this version, too. */
  join(server) {
    for (const client of clientsAt(server, ISSUERS)) this.#begin(client, 'upgraded');
  }

  /**
   * Returns the counts since the last call. A pause that has not ended yet counts with its present
   * length.
   */
  take() {
    this.#notePause();
    const seen = { ...this.#seen, seconds: (performance.now() - this.#since) / 1000 };
    this.#seen = emptyCounts();
    this.#since = performance.now();
    return seen;
  }

  pauseSoFar() {
    return this.#stopped ? 0 : performance.now() - this.#lastIssued;
  }

  async stop() {
    const seen = this.take();
    this.#stopped = true;
    await Promise.all(this.#clients);
    return seen;
  }

  #begin(client, kind) {
    this.#clients.push(this.#repeat(client, kind));
  }

  async #repeat(client, kind) {
    while (!this.#stopped) {
      const start = performance.now();
      const failure = await client.send().then(
        () => undefined,
        (error) => error.message,
      );
      if (failure !== undefined) {
        this.#seen.failures.push(kind === 'upgraded' ? `${failure} of this version` : failure);
        continue;
      }
      if (kind === 'issued') {
        this.#notePause();
        this.#lastIssued = performance.now();
      }
      this.#seen[kind].push(performance.now() - start);
    }
    client.close();
  }

  #notePause() {
    this.#seen.pause = Math.max(this.#seen.pause, performance.now() - this.#lastIssued);
  }
}

const emptyCounts = () => ({ issued: [], read: [], upgraded: [], failures: [], pause: 0 });

function report(phases) {
  const rows = Object.entries(phases).map(
    ([phase, { issued, read, upgraded, failures, pause, seconds: s }]) => ({
      phase,
      seconds: s.toFixed(1),
      certificates: issued.length,
      reads: read.length,
      'certificates of this version': upgraded.length,
      'other answers than 200': failures.length,
      'longest pause of issuance ms': pause.toFixed(0),
      'p50 ms': percentile(issued, 0.5).toFixed(0),
      'slowest ms': issued.reduce((most, one) => Math.max(most, one), 0).toFixed(0),
      'slowest read ms': read.reduce((most, one) => Math.max(most, one), 0).toFixed(0),
    }),
  );
  process.stdout.write(`${table(rows)}\n`);
}

/**
 * Checks the counts.
 * @throws Error for any answer but 200, and for a pause that is too long
 */
function assertServed(phases) {
  const failures = phases.flatMap((phase) => phase.failures);
  if (phases.at(-1).upgraded.length === 0) throw new Error('no server of this version issued');
  if (failures.length > 0) throw new Error(`${failures.length} answers: ${failures[0]}`);
  const pause = Math.max(...phases.map((phase) => phase.pause));
  if (pause > LONGEST_PAUSE)
    throw new Error(`no certificate was issued for ${pause.toFixed(0)} ms`);
}
