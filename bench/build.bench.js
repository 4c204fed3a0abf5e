import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { freePort } from '@svc/stand-ins/loopback-server';

const ROOT = resolve(import.meta.dirname, '..');

/** The source that is changed for the measurement, and restored after it. */
const CHANGED = join(ROOT, 'src/features/health/health.controller.ts');

const TIMES = 3;

/** The longest wait for the server to start or to stop, in milliseconds. */
const PATIENCE = 120_000;

/**
 * The pause before each change that `npm run dev` is to notice, in milliseconds. Without it, the
 * work after one change, such as the type check, would slow down the next restart.
 */
const QUIET = 6_000;

/**
 * Measures the build and the restart of `npm run dev` after a change of one file. No other program
 * should run on the machine.
 */
export async function run() {
  const source = await readFile(CHANGED, 'utf8');
  const change = (turn) => writeFile(CHANGED, `${source}\nexport const turn = ${turn};\n`);
  try {
    await rm(join(ROOT, 'dist/.tsbuildinfo'), { force: true });
    report('whole build', await build());
    for (let turn = 0; turn < TIMES; turn += 1) {
      await change(turn);
      report('build after a change of one file', await build());
    }
    report('build without a change', await build());
    await measureRestarts(change);
  } finally {
    await writeFile(CHANGED, source);
    await build();
  }
}

/** Runs the build. Returns its time and its CPU time in seconds. */
async function build() {
  const before = cpuOfEndedProcesses();
  const start = performance.now();
  const child = spawn(process.execPath, ['scripts/build.js'], { cwd: ROOT, stdio: 'ignore' });
  const [status] = await once(child, 'close');
  if (status !== 0) throw new Error('the build failed');
  const seconds = (performance.now() - start) / 1000;
  return { seconds, cpu: cpuOfEndedProcesses() - before };
}

/**
 * Returns the CPU seconds of the processes that this process started and that have ended (proc(5):
 * cutime, cstime).
 */
function cpuOfEndedProcesses() {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ');
  return (Number(fields[13]) + Number(fields[14])) / 100;
}

/**
 * Runs `npm run dev` on a database of its own, and measures the time from a change to the first
 * answer of the changed server.
 */
async function measureRestarts(change) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const [port, secret] = [await freePort(0), 'the secret of the bench client'];
  const baseUrl = `http://localhost:${port}`;
  const redirectUri = `${baseUrl}/oauth/callback`;
  const idp = await startDemoIdentityProvider({
    clientId: 'svc',
    clientSecret: secret,
    redirectUri,
  });
  const dev = spawn(process.execPath, ['scripts/dev.js'], {
    cwd: ROOT,
    stdio: 'ignore',
    env: {
      ...process.env,
      SVC_BASE_URL: baseUrl,
      SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
      SVC_DATA_DIR: join(folder, 'data'),
      SVC_JWT_SECRET: 'a root secret that only the bench knows',
      SVC_IDPS: 'demo',
      SVC_IDP_DEMO_TYPE: 'oidc',
      SVC_IDP_DEMO_ISSUER: idp.issuer,
      SVC_IDP_DEMO_CLIENT_ID: 'svc',
      SVC_IDP_DEMO_CLIENT_SECRET: secret,
    },
  });
  try {
    await until(() => isServing(baseUrl));
    await delay(QUIET); // until the type check has ended
    for (let turn = TIMES; turn < 2 * TIMES; turn += 1) {
      const start = performance.now();
      await change(turn);
      await until(async () => !(await isServing(baseUrl)));
      await until(() => isServing(baseUrl));
      report('restart of npm run dev', { seconds: (performance.now() - start) / 1000 });
      await delay(QUIET);
    }
  } finally {
    dev.kill('SIGTERM');
    await once(dev, 'close');
    await idp.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function isServing(baseUrl) {
  const answer = await fetch(`${baseUrl}/health`, { headers: { connection: 'close' } }).catch(
    () => undefined,
  );
  return answer?.ok === true;
}

/** Waits until a function returns true, and throws after two minutes. */
async function until(question) {
  const limit = performance.now() + PATIENCE;
  while (!(await question())) {
    if (performance.now() > limit) throw new Error('npm run dev does not serve');
    await delay(10);
  }
}

function report(what, { seconds, cpu }) {
  const used = cpu === undefined ? '' : `, ${cpu.toFixed(1)} s of CPU`;
  process.stdout.write(`${what}: ${seconds.toFixed(2)} s${used}\n`);
}
