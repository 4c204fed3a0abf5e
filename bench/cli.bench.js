import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { percentile, table } from './measure.js';

const ROUNDS = 40;
const SERVER = 'https://login.example.com';
const BUNDLE = resolve(import.meta.dirname, '../dist/svc.mjs');

/**
 * Measures the start of the command. It runs `svc ssh check`, for which every `ssh` waits, with a
 * certificate in the cache. For comparison it runs `node -e 0`. The two are measured alternately,
 * on each version of Node that SVC_TEST_NODES names (`.ci/run` sets it). If SVC_TEST_EXECUTABLE
 * names an executable of the command, a second table compares it with the script.
 */
export async function run() {
  const home = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  try {
    writeLogin(home);
    process.stdout.write(`${table(nodes().map((node) => row(node, home)))}\n`);
    const executable = process.env.SVC_TEST_EXECUTABLE;
    if (executable) process.stdout.write(`${table([executableRow(executable, home)])}\n`);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/**
 * Writes the configuration, a key pair and a certificate that is valid for a day. `svc login` and a
 * first login by `ssh` write the same files.
 */
function writeLogin(home) {
  const folder = join(home, 'state/login.example.com/ssh');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const keygen = (...args) => execFileSync('ssh-keygen', ['-q', ...args]);
  keygen('-t', 'ed25519', '-N', '', '-f', join(folder, 'id'));
  keygen('-t', 'ed25519', '-N', '', '-f', join(home, 'ca'));
  keygen(
    '-s',
    join(home, 'ca'),
    '-I',
    'bench',
    '-n',
    'ada',
    '-V',
    '-1m:+1d',
    join(folder, 'id.pub'),
  );
  writeFileSync(join(home, 'config.json'), JSON.stringify({ server: SERVER }), { mode: 0o600 });
}

/**
 * Returns the paths of the programs of Node: those in the folder SVC_TEST_NODES, and the one that
 * runs this script.
 */
function nodes() {
  const pattern = `${process.env.SVC_TEST_NODES ?? '/nonexistent'}/*/node_modules/node-*/bin/node`;
  return [...globSync(pattern), process.execPath];
}

function row(node, home) {
  const bare = [];
  const command = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    bare.push(seconds(node, ['-e', '0'], home));
    command.push(seconds(node, [BUNDLE, 'ssh', 'check', 'host.example'], home));
  }
  const [a, b] = [bare, command].map((samples) => percentile(samples, 0.5) * 1000);
  return {
    node: execFileSync(node, ['--version'], { encoding: 'utf8' }).trim(),
    'node -e 0, ms': a.toFixed(1),
    'svc ssh check, ms': b.toFixed(1),
    ratio: (b / a).toFixed(2),
  };
}

/**
 * Compares the times of `svc ssh check` as an executable and as a script on the Node of this
 * process.
 */
function executableRow(executable, home) {
  const check = ['ssh', 'check', 'host.example'];
  const [ofScript, ofExecutable] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    ofScript.push(seconds(process.execPath, [BUNDLE, ...check], home));
    ofExecutable.push(seconds(executable, check, home));
  }
  const [a, b] = [ofScript, ofExecutable].map((samples) => percentile(samples, 0.5) * 1000);
  return {
    'script, ms': a.toFixed(1),
    'executable, ms': b.toFixed(1),
    ratio: (b / a).toFixed(2),
  };
}

function seconds(node, args, home) {
  const start = process.hrtime.bigint();
  const { status, stderr } = spawnSync(node, args, {
    encoding: 'utf8',
    env: { SVC_HOME: home, PATH: process.env.PATH },
  });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return Number(process.hrtime.bigint() - start) / 1e9;
}
