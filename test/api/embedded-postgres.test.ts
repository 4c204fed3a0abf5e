import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { chmod, chown, mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openPool } from '#platform/database/connection.js';
import {
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from '#platform/database/embedded-postgres/embedded-postgres.js';
import { isDatabaseAway } from '#platform/database/statements/faults.js';
import { runScript, type ChildScript } from '../support/child-script.js';
import type { EmbeddedServerAnswer } from '../support/embedded-server.js';
import { isAlive, signal, withDescendants } from '../support/processes.js';
import { requires } from '../support/programs.js';
import { RecordingLog } from '../support/recording-log.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import { administer } from '../support/test-server.js';
import '../support/full-scale-only.js';

const NOBODY = 65534;

/**
 * The time limit of a wait in milliseconds. It is long because a shutdown of PostgreSQL writes to a
 * disk that other processes use too.
 */
const SOON = 30_000;

type Child = ChildScript<EmbeddedServerAnswer>;

describe('the embedded PostgreSQL', () => {
  let pristine: string;
  let dataDir: string;
  let log: RecordingLog;
  let children: Child[];
  let servers: EmbeddedPostgres[];

  beforeAll(async () => {
    pristine = await makeTemporaryDirectory();
    await (await startEmbeddedPostgres({ dataDir: pristine, log: new RecordingLog() })).stop();
  });
  afterAll(() => removeDirectory(pristine));

  beforeEach(async () => {
    dataDir = await makeTemporaryDirectory();
    execFileSync('cp', ['-a', join(pristine, 'postgres'), dataDir]);
    log = new RecordingLog();
    children = [];
    servers = [];
  });
  afterEach(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await Promise.all(children.map((child) => child.finish()));
    await removeDirectory(dataDir);
  });

  async function start(options: { patience?: number } = {}): Promise<EmbeddedPostgres> {
    const server = await startEmbeddedPostgres({ dataDir, log, ...options });
    servers.push(server);
    return server;
  }
  async function startInChild(uid?: number): Promise<[EmbeddedServerAnswer, Child]> {
    const child: Child = runScript('embedded-server.ts', { dataDir }, { uid });
    children.push(child);
    return [await child.answer, child];
  }
  const removeCluster = () => removeDirectory(join(dataDir, 'postgres'));
  const pidFile = () => join(dataDir, 'postgres', 'postmaster.pid');
  const postmasterPid = () => Number.parseInt(readFileSync(pidFile(), 'utf8'), 10);

  it('is durable, private and without a TCP port, and keeps its data between runs', async () => {
    const server = await start();
    const [settings] = await administer<Record<string, string>>(
      server,
      `SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit,
              current_setting('full_page_writes') AS pages, current_setting('listen_addresses') AS tcp`,
    );
    expect(settings).toEqual({ fsync: 'on', commit: 'on', pages: 'on', tcp: '' });
    expect(statSync(server.socketDir).mode & 0o777).toBe(0o700);
    expect(statSync(join(dataDir, 'postgres')).mode & 0o777).toBe(0o700);
    await administer(server, 'CREATE TABLE kept (id integer)');
    await server.stop();
    expect(existsSync(server.socketDir)).toBe(false);
    expect(await administer(await start(), 'SELECT id FROM kept')).toEqual([]);
  });

  requires('reachable').describe('for people', () => {
    it('starts as an ordinary user', async () => {
      const uid = process.getuid?.() === 0 ? NOBODY : process.getuid?.();
      await removeCluster();
      await chownIfRoot(dataDir, uid);
      const [server] = await startInChild(process.getuid?.() === 0 ? NOBODY : undefined);
      expect(ownerOf(postmasterPid())).toBe(uid);
      expect(await administer(server, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    });
  });

  it('inherits no environment variables, which contain the secrets', async () => {
    await start();
    expect(Object.keys(process.env)).toContain('VITEST');
    expect(environmentOf(postmasterPid())).not.toContain('VITEST');
  });

  it('ends soon after a kill -9 of its parent, leaves no socket, and keeps the data', async () => {
    const [server, parent] = await startInChild();
    await administer(server, 'CREATE TABLE kept (id integer)');
    const postmaster = postmasterPid();
    await parent.kill();
    await isGone(postmaster);
    await vi.waitFor(() => expect(existsSync(server.socketDir)).toBe(false), SOON);
    expect(await administer(await start(), 'SELECT id FROM kept')).toEqual([]);
  });

  it('starts again in the moment when its parent is killed', async () => {
    const [server, parent] = await startInChild();
    await administer(server, 'CREATE TABLE kept (id integer)');
    await parent.kill();
    expect(await administer(await start(), 'SELECT id FROM kept')).toEqual([]);
  });

  it('is found and stopped when its parent and its watchdog were both killed, and keeps its data', async () => {
    const [server, parent] = await startInChild();
    await administer(server, 'CREATE TABLE kept (id integer)');
    const orphan = postmasterPid();
    // stopped, so that the parent does not start another server
    process.kill(parent.pid, 'SIGSTOP');
    for (const pid of watchdogOf(orphan)) process.kill(pid, 'SIGKILL');
    await parent.kill();
    expect(isRunning(orphan)).toBe(true);

    const successor = await start();
    expect(log.lines).toContain(
      `warn Stopping the PostgreSQL (process ${orphan}) that an earlier run left behind`,
    );
    expect(isRunning(orphan)).toBe(false);
    expect(existsSync(server.socketDir)).toBe(false);
    expect(await administer(successor, 'SELECT id FROM kept')).toEqual([]);
  });

  it('does not keep its parent from ending while it is frozen, and ends afterwards', async () => {
    const [server, parent] = await startInChild();
    await administer(server, 'CREATE TABLE kept (id integer)');
    const frozen = withDescendants(postmasterPid());
    expect(frozen.length).toBeGreaterThan(5);
    // a process of PostgreSQL can end between the list and its signal
    for (const pid of frozen) signal(pid, 'SIGSTOP');
    const begun = performance.now();
    await parent.finish();
    expect(performance.now() - begun).toBeLessThan(5_000);
    expect(await administer(await start(), 'SELECT id FROM kept')).toEqual([]);
    expect(frozen.filter(isAlive)).toEqual([]);
  });

  it('refuses a second process, and continues to serve the first', async () => {
    const [server] = await startInChild();
    await expect(start()).rejects.toThrow(
      `Another process is using ${join(dataDir, 'postgres')} (PostgreSQL is process ${postmasterPid()})`,
    );
    expect(await administer(server, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('is set up again when the first start was killed half-way', async () => {
    await removeCluster();
    const child = runScript('embedded-server.ts', { dataDir });
    // the child is killed before its server starts, so that this promise rejects
    child.answer.catch(() => undefined);
    await vi.waitFor(
      async () => {
        const [unfinished = ''] = await readdir(dataDir);
        await readFile(join(dataDir, unfinished, 'PG_VERSION'));
      },
      { timeout: SOON, interval: 5 },
    );
    await child.kill();
    expect(existsSync(join(dataDir, 'postgres'))).toBe(false);
    expect(await administer(await start(), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(await readdir(dataDir)).toEqual(['postgres']);
  });

  it.each([
    ['empty', () => ''],
    ['from a process that is no more', () => '999999999\n'],
    ['true of another program by now', () => `${process.pid}\n`],
  ])('starts despite a pid file that is %s', async (_, content) => {
    const server = await start();
    const directory = join(dataDir, 'postgres');
    await server.stop();
    await writeFile(pidFile(), content());
    await chownIfRoot(pidFile(), statSync(directory).uid);
    expect(await administer(await start(), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  describe('an embedded PostgreSQL that ends unexpectedly', () => {
    let server: EmbeddedPostgres;
    let pool: DataSource;

    beforeEach(async () => {
      server = await start();
      const { socketDir: host, port, user, database } = server;
      pool = await openPool({ host, port, user, database }, log, 5);
    });
    afterEach(() => pool.destroy());

    const answers = () => pool.query('SELECT 1 AS one');
    /**
     * Damages the server, and sends queries until the pool answers again from a new server. Returns
     * the errors of the queries.
     */
    async function faultsAfter(blow: () => void): Promise<unknown[]> {
      const before = postmasterPid();
      const faults: unknown[] = [];
      blow();
      await isGone(before);
      const healed = async () => {
        await answers(); // a process of the killed server may answer some more queries
        return existsSync(pidFile()) && postmasterPid() !== before;
      };
      await vi.waitUntil(() => healed().catch((error: unknown) => void faults.push(error)), {
        timeout: SOON,
        interval: 20,
      });
      expect(log.lines.filter((line) => line.startsWith('error PostgreSQL ended'))).toHaveLength(1);
      return faults;
    }

    it('is restarted after a kill -9, and the same pool recovers', async () => {
      await pool.query('CREATE TABLE kept (id integer)');
      const faults = await faultsAfter(() => process.kill(postmasterPid(), 'SIGKILL'));
      // empty also if no query failed
      expect(faults.filter((error) => !isDatabaseAway(error))).toEqual([]);
      expect(await pool.query('SELECT id FROM kept')).toEqual([]);
    });

    it('is restarted after an outside shutdown', async () => {
      const faults = await faultsAfter(() => process.kill(postmasterPid(), 'SIGINT'));
      expect(faults.filter((error) => !isDatabaseAway(error))).toEqual([]);
    });

    it('is restarted under a new watchdog when its watchdog was killed', async () => {
      const faults = await faultsAfter(() => process.kill(parentOf(postmasterPid()), 'SIGKILL'));
      expect(faults.filter((error) => !isDatabaseAway(error))).toEqual([]);
    });

    it('stops for good on request, even during a restart', async () => {
      process.kill(postmasterPid(), 'SIGKILL');
      await server.stop();
      await expect(answers()).rejects.toSatisfy(isDatabaseAway);
      expect(existsSync(server.socketDir)).toBe(false);
    });

    it('has its supervisor again after the kill of a session made PostgreSQL restart', async () => {
      const [session] = await pool.query<{ pid: number }[]>('SELECT pg_backend_pid() AS pid');
      process.kill(session?.pid ?? Number.NaN, 'SIGKILL');
      await vi.waitFor(answers, { timeout: SOON, interval: 20 });
      await vi.waitFor(async () => {
        expect(await pool.query(`SELECT 1 FROM pg_locks WHERE locktype = 'advisory'`)).toHaveLength(
          1,
        );
      }, SOON);
      await expect(startEmbeddedPostgres({ dataDir, log })).rejects.toThrow('Another process');
    });
  });

  describe('an embedded PostgreSQL that no longer responds', () => {
    const MUTE = 'error PostgreSQL runs, but does not respond';

    /**
     * Removes the socket of the server, so that it runs but cannot be reached, and terminates the
     * connection by which the supervisor checks it.
     */
    async function silence(
      server: EmbeddedPostgres,
      meanwhile: () => Promise<void> = () => Promise.resolve(),
    ): Promise<void> {
      const pool = await openPool(
        { host: server.socketDir, port: server.port, user: server.user, database: server.database },
        log,
        1,
      );
      await removeDirectory(server.socketDir);
      await meanwhile();
      const terminated = pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'svc-server supervisor'`,
      );
      // On a busy machine the supervisor notices first that the server does not answer, and ends
      // it, so that this query fails.
      await terminated.catch((error: unknown) => {
        if (!/terminating connection/.test(String(error))) throw error;
      });
      await pool.destroy();
    }

    it('is ended and restarted at the same socket, with its data', async () => {
      const server = await start({ patience: 0 });
      await administer(server, 'CREATE TABLE kept (id integer)');
      const before = postmasterPid();
      await silence(server);
      await vi.waitUntil(() => !isRunning(before), 10_000);
      await vi.waitFor(
        async () => expect(await administer(server, 'SELECT id FROM kept')).toEqual([]),
        { timeout: 90_000, interval: 20 },
      );
      expect(statSync(server.socketDir).mode & 0o777).toBe(0o700);
      expect(log.lines.filter((line) => line.startsWith(MUTE))).toHaveLength(1);
    });

    it('is not ended before the time limit', async () => {
      const server = await start({ patience: 600_000 });
      const before = postmasterPid();
      await silence(server);
      expect(isRunning(before)).toBe(true);
      await server.stop();
      expect(isRunning(before)).toBe(false);
      expect(log.lines.filter((line) => line.startsWith(MUTE))).toEqual([]);
    });

    it('refuses a socket directory that another user created under its name', async () => {
      const server = await start({ patience: 0 });
      const before = postmasterPid();
      await silence(server, async () => {
        await mkdir(server.socketDir);
        await chmod(server.socketDir, 0o777);
        await writeFile(join(server.socketDir, 'theirs'), '');
      });
      await vi.waitUntil(() => !isRunning(before), 10_000);
      const refusal = `error ${server.socketDir} is not the private directory it was.`;
      await vi.waitFor(
        () => expect(log.lines).toContainEqual(expect.stringContaining(refusal)),
        10_000,
      );
    });
  });

  it('names the alternatives where its package is not installed', async () => {
    const arch = Object.getOwnPropertyDescriptor(process, 'arch') ?? {};
    Object.defineProperty(process, 'arch', { ...arch, value: 'pdp11' });
    try {
      await expect(start()).rejects.toThrow(
        /needs the optional package @embedded-postgres\/\w+-pdp11, .* set SVC_DATABASE_URL/,
      );
    } finally {
      Object.defineProperty(process, 'arch', arch);
    }
  });

  requires('root', 'reachable').describe('as root', () => {
    it('10.7 runs under a user id that no other process has', async () => {
      await start();
      const owner = ownerOf(postmasterPid());
      expect([0, NOBODY]).not.toContain(owner);
      expect(readFileSync('/etc/passwd', 'utf8')).not.toContain(`:${owner}:`);
      expect(ownersBelow(join(dataDir, 'postgres'))).toEqual(new Set([owner]));
    });

    it('10.7 takes over a cluster that an earlier version ran as the user nobody, and trusts no connection to it', async () => {
      const directory = join(dataDir, 'postgres');
      execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, directory]);
      await writeFile(join(directory, 'pg_hba.conf'), 'local all all trust\n');
      const server = await start();
      expect(ownersBelow(directory)).toEqual(new Set([ownerOf(postmasterPid())]));
      expect(ownerOf(postmasterPid())).not.toBe(NOBODY);
      await administer(server, 'SELECT 1');
      expect(await errorAs(NOBODY, server)).toMatch(/EACCES|28000/);
    });

    it('10.7 writes through no link that a process of the old user left in the cluster, and closes its directories', async () => {
      const directory = join(dataDir, 'postgres');
      const elsewhere = join(dataDir, 'of root');
      await writeFile(elsewhere, 'untouched');
      for (const name of ['pg_hba.conf.new', 'pg_ident.conf.new']) {
        symlinkSync(elsewhere, join(directory, name));
      }
      execFileSync('chown', ['-Rh', `${NOBODY}:${NOBODY}`, directory]);
      await chmod(join(directory, 'base'), 0o777);
      const server = await start();
      expect(await readFile(elsewhere, 'utf8')).toBe('untouched');
      expect(lstatSync(elsewhere).uid).toBe(0);
      expect(lstatSync(join(directory, 'base')).mode & 0o777).toBe(0o700);
      expect(await administer(server, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    });

    it('10.7 refuses every user but root, also one that reaches the socket', async () => {
      const server = await start();
      await chmod(server.socketDir, 0o777);
      await chmod(join(server.socketDir, '.s.PGSQL.5432'), 0o777);
      expect(await errorAs(NOBODY, server)).toMatch(/28000/);
      expect(await errorAs(ownerOf(postmasterPid()), server)).toMatch(/28000/);
      expect(await administer(server, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    });

    it('serves a cluster that an unprivileged user created, as that user', async () => {
      await removeCluster();
      await chown(dataDir, NOBODY, NOBODY);
      const [server, child] = await startInChild(NOBODY);
      await administer(server, 'CREATE TABLE kept (id integer)');
      await child.finish();
      expect(await administer(await start(), 'SELECT id FROM kept')).toEqual([]);
      expect(ownerOf(postmasterPid())).toBe(NOBODY);
    });

    it('"refuses an unprivileged user when the cluster is another user\'s"', async () => {
      await (await start()).stop();
      await chown(join(dataDir, 'postgres'), 1, 1);
      await chown(join(dataDir, 'postgres', 'PG_VERSION'), 1, 1);
      await chmod(join(dataDir, 'postgres'), 0o711);
      await expect(startInChild(NOBODY)).rejects.toThrow(
        'belongs to user 1, and this is user 65534',
      );
    });
  });

  requires('root', 'unshare').describe(
    'as root, below a directory that only root can reach',
    () => {
      it.skipIf(!namespacesWork())(
        `runs as root's own files' owner in a user namespace${namespacesWork() ? '' : ' (skipped: this machine forbids user namespaces)'}`,
        async () => {
          await chmod(dataDir, 0o700);
          dataDir = join(dataDir, 'inner');
          await mkdir(dataDir);
          const server = await start();
          expect(statSync(join(dataDir, 'postgres')).uid).toBe(0);
          await administer(server, 'CREATE TABLE kept (id integer)');
          await server.stop();

          const [again, parent] = await startInChild();
          expect(await administer(again, 'SELECT id FROM kept')).toEqual([]);
          const postmaster = postmasterPid();
          await parent.kill();
          await isGone(postmaster);
          dataDir = dirname(dataDir);
        },
      );
    },
  );
});

/**
 * Returns true if a process runs. A process that has ended but that its parent has not collected
 * does not count.
 */
function isRunning(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`) !== '';
  } catch {
    return false;
  }
}

/** Resolves when a process has ended. Rejects after 30 seconds. */
async function isGone(pid: number): Promise<void> {
  await vi.waitUntil(() => !isRunning(pid), SOON);
}

const status = (pid: number, field: string): number =>
  Number(
    new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1],
  );
const ownerOf = (pid: number) => status(pid, 'Uid');
const parentOf = (pid: number) => status(pid, 'PPid');
/**
 * Returns the process ids of the server's watchdog shell and of its sub-shell, which waits for the
 * end of this process.
 */
const watchdogOf = (pid: number): number[] => {
  const shell = parentOf(pid);
  const children = readFileSync(`/proc/${shell}/task/${shell}/children`, 'utf8').trim().split(' ');
  return [shell, ...children.map(Number).filter((child) => child !== pid)];
};
const environmentOf = (pid: number) => readFileSync(`/proc/${pid}/environ`, 'utf8');

/** Returns the user ids that own a directory or anything below it. */
const ownersBelow = (directory: string) =>
  new Set(
    ['', ...readdirSync(directory, { recursive: true, encoding: 'utf8' })].map(
      (name) => lstatSync(join(directory, name)).uid,
    ),
  );

/**
 * Connects as another user of the operating system. Returns the code of the error, or an empty text
 * after a success.
 */
async function errorAs(uid: number, server: EmbeddedPostgres): Promise<string> {
  const script = runScript<{ code: string }>('connect.ts', server, { uid });
  const { code } = await script.answer;
  await script.finish();
  return code;
}

async function chownIfRoot(path: string, uid: number | undefined): Promise<void> {
  if (process.getuid?.() === 0 && uid !== undefined) await chown(path, uid, uid);
}

function namespacesWork(): boolean {
  try {
    execFileSync('unshare', ['--user', '--map-user=65534', '--map-group=65534', 'true'], {
      stdio: 'ignore',
    });
    return true;
  } catch {
    return false;
  }
}
