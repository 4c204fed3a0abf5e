import { execFile } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cpuColumns } from './cpu-time.js';
import { measureTurn, percentile, table } from './measure.js';
import { RawClient } from './raw-client.js';
import { startBenchServer } from './server.js';

const SECONDS = 10;
const WARM_UP_SECONDS = 3;
const KEYGEN_ROUNDS = 100;
const exec = promisify(execFile);

/** The scenarios. The first one also warms the server up for the second. */
export const SSH_SCENARIOS = [1, 32].map((clients) => ({
  what: `SSH certificate, ${clients} ${clients === 1 ? 'client' : 'clients'}`,
  sleeps: true,
  open: (server) => clientsOf(server).slice(0, clients),
}));

/**
 * Measures SSH certificates over HTTP, with 1 client and with 32. Each certificate has a durable
 * row of issuance and an audit row. For comparison it measures `ssh-keygen -s` with the same CA
 * key, and the bare Ed25519 signature.
 */
export async function run() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const caFile = await makeCaKey(folder);
  const server = await startBenchServer(folder, { SVC_SSH_CA_KEY_PATH: caFile });
  try {
    const rows = [];
    let issued = 0;
    for (const { what, open, sleeps } of SSH_SCENARIOS) {
      const work = { open: () => open(server), sleeps };
      const turn = await measureTurn(server.pid, work, {
        seconds: SECONDS,
        warmUpSeconds: WARM_UP_SECONDS,
      });
      issued += turn.acts;
      rows.push(certificateRow(what, turn));
    }
    const recorded = await server.count('ssh_certificates');
    const audited = await server.count("audit_events WHERE type = 'ssh_credential'");
    if (Math.min(recorded, audited) < issued) {
      throw new Error('a certificate was issued that is not on record');
    }
    const keygen = await sshKeygen(folder, caFile);
    const bare = bareSignature();
    process.stdout.write(
      `${table(rows)}\n\n` +
        `${table([
          { peer: 'ssh-keygen -s', ...keygen },
          { peer: 'bare Ed25519 signature', 'per CPU-second': bare.toFixed(0) },
        ])}\n\n` +
        `${SECONDS} s each; fsync on; ${recorded} issuance rows and ${audited} audit rows on record\n` +
        `per CPU-second: certificates per second of CPU time of the server and of all PostgreSQL processes together\n`,
    );
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Makes the key of a certificate authority.
 * @returns the path of its file
 */
export async function makeCaKey(folder) {
  const file = join(folder, 'ca');
  await exec('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'bench', '-f', file]);
  return file;
}

function certificateRow(what, { latencies, server, postgres }) {
  const share = (part) => `${((100 * part) / (server + postgres)).toFixed(0)} %`;
  return {
    what,
    'per CPU-second': (latencies.length / (server + postgres)).toFixed(0),
    'of the server alone': (latencies.length / server).toFixed(0),
    ...cpuColumns({ server, postgres }, latencies.length),
    'server share': share(server),
    'PostgreSQL share': share(postgres),
    'per second': (latencies.length / SECONDS).toFixed(0),
    'p50 ms': percentile(latencies, 0.5).toFixed(1),
    'p99 ms': percentile(latencies, 0.99).toFixed(1),
  };
}

/** Opens one client for each person, with the token of that person's session. */
export function clientsOf(server) {
  return server.tokens.map((token) => {
    const client = new RawClient(`${server.baseUrl}/v1/credentials/ssh`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ public_key: server.publicKeyLine }),
    });
    return { act: () => client.send(), close: () => client.close() };
  });
}

/**
 * Measures `ssh-keygen -s`, which starts a process for each certificate. It measures the elapsed
 * time. For the CPU time, a shell starts the same number of processes, because a shell can print
 * the CPU time of its children (`times`).
 */
async function sshKeygen(folder, caFile) {
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
  return {
    'per CPU-second': (KEYGEN_ROUNDS / cpu).toFixed(0),
    'p50 ms': percentile(times, 0.5).toFixed(1),
    'p99 ms': percentile(times, 0.99).toFixed(1),
  };
}

/**
 * Measures bare signatures over as many bytes as a certificate has. Returns the signatures for each
 * second of CPU time.
 */
function bareSignature() {
  const { privateKey } = generateKeyPairSync('ed25519');
  const message = Buffer.alloc(300, 7);
  const rounds = 20_000;
  const start = process.cpuUsage();
  for (let i = 0; i < rounds; i += 1) sign(null, message, privateKey);
  const { user, system } = process.cpuUsage(start);
  return rounds / ((user + system) / 1e6);
}
