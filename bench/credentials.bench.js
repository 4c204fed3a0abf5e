import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { GitHubStandIn } from '../dist/demo/github-stand-in/github-stand-in.js';
import { cpuColumns } from './cpu-time.js';
import { measureTurn, percentile, table } from './measure.js';
import { RawClient } from './raw-client.js';
import { startBenchServer } from './server.js';
import { makeCaKey } from './ssh.bench.js';

const SECONDS = 8;
const WARM_UP_SECONDS = 3;
const CLIENTS = [1, 64];
/** The most that a token for AWS may cost of a bare RS256 signature. */
const AIM = 1.6;
const OWNER = 'bench-org';

const KINDS = [
  { kind: 'SSH certificate', path: '/v1/credentials/ssh', peer: 'ed25519', type: 'ssh_credential' },
  { kind: 'AWS token', path: '/v1/credentials/aws/token', peer: 'rsa', type: 'aws_credential' },
  { kind: 'GitHub token', path: '/v1/credentials/github/token', type: 'github_credential' },
];

/**
 * Measures the three kinds of credentials over HTTP, each with its durable rows, with 1 client and with 64, beside the bare
 * signatures of RS256 (a key of 3072 bits, as the service has) and Ed25519. The signatures are measured before and after
 * each turn, so that both columns saw the same machine. GitHub is a stand-in in this process, whose time does not count.
 *
 * @param only the kind to measure, such as `aws`; all three by default
 */
export async function run(only = '') {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const github = await GitHubStandIn.start();
  const server = await startBenchServer(folder, {
    SVC_SSH_CA_KEY_PATH: await makeCaKey(folder),
    ...github.environment,
  });
  try {
    await linkInstallation(github, server);
    const rows = [];
    for (const kind of KINDS.filter(({ path }) => path.includes(only))) {
      for (const clients of CLIENTS) rows.push(await measureKind(server, kind, clients));
    }
    process.stdout.write(
      `${table(rows)}\n\n` +
        `${SECONDS} s each; fsync on; the time of the server and of all PostgreSQL processes together\n` +
        `of the bare signature: the time of a credential over that of RS256 or Ed25519 alone; the aim for AWS is ${AIM}\n`,
    );
  } finally {
    await server.stop();
    await github.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measureKind(server, { kind, path, peer, type }, clients) {
  const errors = new Map();
  const open = () => openClients(server, path, clients, errors);
  const before = bareMicroseconds(peer);
  const turn = await measureTurn(
    server.pid,
    { open, sleeps: true },
    { seconds: SECONDS, warmUpSeconds: WARM_UP_SECONDS },
  );
  const bare = (before + bareMicroseconds(peer)) / 2;
  const failed = [...errors.values()].reduce((sum, count) => sum + count, 0);
  const recorded = await server.count(`audit_events WHERE type = '${type}'`);
  if (recorded < turn.acts - failed) throw new Error(`a ${kind} was issued that is not on record`);
  const acts = turn.latencies.length;
  const together = ((turn.server + turn.postgres) * 1e6) / acts;
  return {
    what: `${kind}, ${clients} ${clients === 1 ? 'client' : 'clients'}`,
    'per CPU-second': (1e6 / together).toFixed(0),
    ...cpuColumns(turn, acts),
    'bare signature µs': peer === undefined ? '' : bare.toFixed(0),
    'of the bare signature': peer === undefined ? '' : (together / bare).toFixed(2),
    'per second': (acts / SECONDS).toFixed(0),
    'p50 ms': percentile(turn.latencies, 0.5).toFixed(1),
    'p99 ms': percentile(turn.latencies, 0.99).toFixed(1),
    errors:
      failed === 0 ? '0' : [...errors].map(([name, count]) => `${count} × ${name}`).join(', '),
  };
}

/** Connects clients, each with the token of a session; two clients share one where there are more than sessions. */
function openClients(server, path, number, errors) {
  return Array.from({ length: number }, (_, index) => {
    const client = new RawClient(server.baseUrl + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${server.tokens[index % server.tokens.length]}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(path.endsWith('/ssh') ? { public_key: server.publicKeyLine } : {}),
    });
    const act = () =>
      client.send().catch(({ message }) => {
        errors.set(message, (errors.get(message) ?? 0) + 1);
      });
    return { act, close: () => client.close() };
  });
}

const BARE = {
  rsa: { digest: 'sha256', rounds: 400, key: generateKeyPairSync('rsa', { modulusLength: 3072 }) },
  ed25519: { digest: null, rounds: 10_000, key: generateKeyPairSync('ed25519') },
};
/** As many bytes as a token for AWS has before its signature; a certificate has a third. */
const MESSAGE = Buffer.alloc(1000, 7);

/** The CPU microseconds of one signature in this process. */
function bareMicroseconds(peer) {
  if (peer === undefined) return 0;
  const { digest, rounds, key } = BARE[peer];
  const start = process.cpuUsage();
  for (let i = 0; i < rounds; i += 1) sign(digest, MESSAGE, key.privateKey);
  const { user, system } = process.cpuUsage(start);
  return (user + system) / rounds;
}

/** Gives the organization of the clients an installation, as an admin does by a link. */
async function linkInstallation(github, { database }) {
  const { id, account } = github.state.install(OWNER, { repositories: ['hello'] });
  const postgres = new Client(database);
  await postgres.connect();
  await postgres.query(
    `INSERT INTO github_installations (id, org_id, account_id, owner, repository_selection, changed_at, linked_by)
     SELECT $1, id, $2, $3, 'selected', now(), id FROM organizations`,
    [id, account.id, OWNER],
  );
  await postgres.end();
}
