import { execFile } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { writePrivateKey } from '../dist/domain/ssh-certificates/openssh-private-key.js';
import { cpuSecondsOf, load, percentile, table } from './measure.js';
import { RawClient } from './raw-client.js';
import { startBenchServer } from './server.js';

const CLIENTS = 32;
const SECONDS = 10;
const WARM_UP_SECONDS = 3;
const KEYGEN_ROUNDS = 100;

/**
 * SSH certificates over HTTP, each with its issuance and audit row durable, beside `ssh-keygen -s` with the same CA key and
 * the bare Ed25519 signature.
 */
export async function run() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const { privateKey } = generateKeyPairSync('ed25519');
  const caFile = join(folder, 'ca');
  await writeFile(caFile, writePrivateKey(privateKey, 'bench'), { mode: 0o600 });
  const server = await startBenchServer(folder, { SVC_SSH_CA_KEY_PATH: caFile });
  try {
    const clients = clientsOf(server);
    const issue = (client) => clients[client].send();
    const warmUp = await load(CLIENTS, WARM_UP_SECONDS, issue);
    const cpu = cpuSecondsOf(server.pid);
    const latencies = await load(CLIENTS, SECONDS, issue);
    const used = cpuSecondsOf(server.pid) - cpu;
    for (const client of clients) client.close();
    const recorded = await server.count('ssh_certificates');
    const audited = await server.count("audit_events WHERE type = 'ssh_credential'");

    if (Math.min(recorded, audited) < warmUp.length + latencies.length) {
      throw new Error('a certificate was issued that is not on record');
    }
    const keygen = await sshKeygen(folder, caFile);
    const bare = bareSignature(privateKey);
    const perCpuSecond = latencies.length / used;
    process.stdout.write(
      `${table([
        {
          what: 'POST /v1/credentials/ssh',
          'per CPU-second': perCpuSecond.toFixed(0),
          'per second': (latencies.length / SECONDS).toFixed(0),
          'p50 ms': percentile(latencies, 0.5).toFixed(1),
          'p99 ms': percentile(latencies, 0.99).toFixed(1),
        },
        { what: 'ssh-keygen -s', ...keygen },
        {
          what: 'bare Ed25519 signature',
          'per CPU-second': bare.toFixed(0),
          'per second': bare.toFixed(0),
          'p50 ms': '',
          'p99 ms': '',
        },
      ])}\n\n` +
        `${CLIENTS} clients, ${SECONDS} s; fsync on; ${recorded} issuance rows and ${audited} audit rows on record\n` +
        `aim: 1900 per CPU-second of the server process, p99 under 30 ms\n`,
    );
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** One client a person, each asking with the token of its own session. */
function clientsOf(server) {
  return server.tokens.map(
    (token) =>
      new RawClient(`${server.baseUrl}/v1/credentials/ssh`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ public_key: server.publicKeyLine }),
      }),
  );
}

/** `ssh-keygen -s`, a process for each certificate: its wall clock, and the CPU time the shell counts of its children. */
async function sshKeygen(folder, caFile) {
  const exec = promisify(execFile);
  const key = join(folder, 'user');
  await exec('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  const argumentsFor = (serial) => [
    '-q',
    '-s',
    caFile,
    '-I',
    'bench',
    '-n',
    'bench',
    '-z',
    serial,
    `${key}.pub`,
  ];
  const times = [];
  for (let serial = 1; serial <= KEYGEN_ROUNDS; serial += 1) {
    const began = performance.now();
    await exec('ssh-keygen', argumentsFor(`${serial}`));
    times.push(performance.now() - began);
  }
  const loop = `for i in $(seq ${KEYGEN_ROUNDS}); do ssh-keygen "$@"; done; times`;
  const { stdout } = await exec('sh', ['-c', loop, 'sh', ...argumentsFor('1')]);
  const cpu = [...(stdout.trim().split('\n').at(-1) ?? '').matchAll(/(\d+)m([\d.]+)s/g)]
    .map(([, minutes, seconds]) => Number(minutes) * 60 + Number(seconds))
    .reduce((sum, seconds) => sum + seconds, 0);
  const wall = times.reduce((sum, ms) => sum + ms, 0) / 1000;
  return {
    'per CPU-second': (KEYGEN_ROUNDS / cpu).toFixed(0),
    'per second': (KEYGEN_ROUNDS / wall).toFixed(0),
    'p50 ms': percentile(times, 0.5).toFixed(1),
    'p99 ms': percentile(times, 0.99).toFixed(1),
  };
}

/** Signatures per CPU-second over as many bytes as a certificate has. */
function bareSignature(privateKey) {
  const message = Buffer.alloc(300, 7);
  const rounds = 20_000;
  const start = process.cpuUsage();
  for (let i = 0; i < rounds; i += 1) sign(null, message, privateKey);
  const { user, system } = process.cpuUsage(start);
  return rounds / ((user + system) / 1e6);
}
