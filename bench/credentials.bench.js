import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { GitHubStandIn } from '@svc/stand-ins/github';
import { cpuColumns } from './cpu-time.js';
import { reportKms, startWithKms } from './kms-keys.js';
import { measureTurn, percentile, table } from './measure.js';
import { RawClient } from './raw-client.js';
import { startBenchServer, startKms } from './server.js';
import { makeCaKey } from './ssh.bench.js';

const WARM_UP_SECONDS = 3;
const CLIENTS = [1, 64];
/** The most CPU time that a token for AWS may cost, as a multiple of a bare RS256 signature. */
const AIM = 1.6;
const OWNER = 'bench-org';

const KINDS = [
  {
    kind: 'SSH certificate',
    path: '/v1/credentials/ssh',
    peer: 'ed25519',
    type: 'ssh_credential',
    inKms: 'CA in KMS',
  },
  {
    kind: 'AWS token',
    path: '/v1/credentials/aws/token',
    peer: 'rsa',
    type: 'aws_credential',
    inKms: 'RSA key in KMS',
  },
  { kind: 'GitHub token', path: '/v1/credentials/github/token', type: 'github_credential' },
];

/** The issuing of tokens for AWS, as scenarios of `npm run bench -- compare`. */
export const AWS_SCENARIOS = [1, 32].map((clients) => ({
  what: `AWS token, ${clients} ${clients === 1 ? 'client' : 'clients'}`,
  sleeps: true,
  open: (server) => openClients(server, '/v1/credentials/aws/token', clients),
}));

/**
 * Measures the three kinds of credentials over HTTP, with 1 client and with 64. The server stores
 * the rows of each credential in its database. For comparison it measures bare signatures of RS256
 * (with a key of 3072 bits, as the service has) and Ed25519. They are measured before and after
 * each kind of credential, because the speed of the machine changes. A second server, which has the
 * keys of SSH and AWS in KMS, is measured alternately with the first one. The CPU time of GitHub
 * and of KMS does not count. Both are stand-ins: GitHub in this process, and KMS in a process of
 * its own.
 *
 * @param args `[KIND] [--seconds=8] [--round-trip=5]`: the kind to measure, such as `aws` (all
 *   three by default), the seconds of each measurement, and the milliseconds by which the stand-in
 *   for KMS delays each answer
 */
export async function run(...args) {
  const { only, seconds, roundTrip } = optionsOf(args);
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const github = await GitHubStandIn.start();
  const kms = await startKms(roundTrip);
  const servers = [];
  try {
    servers.push(await startLocal(join(folder, 'local'), github));
    servers.push(await startWithKms(join(folder, 'kms'), kms));
    const rows = [];
    const pairs = [];
    for (const kind of KINDS.filter(({ path }) => path.includes(only))) {
      for (const clients of CLIENTS) {
        const figures = await measureBoth(servers, kind, clients, seconds);
        rows.push(...figures.map(rowOf));
        if (figures.length > 1) pairs.push(figures);
      }
    }
    process.stdout.write(
      `${table(rows)}\n\n` +
        `${seconds} s each; fsync on; the time of the server and of all PostgreSQL processes together\n` +
        `of the bare signature: the time of a credential over that of RS256 or Ed25519 alone; the aim for AWS is ${AIM}\n`,
    );
    if (pairs.length > 0) reportKms(pairs, roundTrip);
  } finally {
    for (const server of [...servers, kms]) await server.stop();
    await github.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function optionsOf(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      seconds: { type: 'string', default: '8' },
      'round-trip': { type: 'string', default: '5' },
    },
  });
  const [only = ''] = positionals;
  const seconds = Number(values.seconds);
  const roundTrip = Number(values['round-trip']);
  if (!KINDS.some(({ path }) => path.includes(only)) || !(seconds > 0) || !(roundTrip >= 0)) {
    process.stderr.write(
      'usage: npm run bench -- credentials [ssh|aws|github] [--seconds=8] [--round-trip=5]\n',
    );
    process.exit(2);
  }
  return { only, seconds, roundTrip };
}

/** Starts the server whose keys are in its own process. */
async function startLocal(folder, github) {
  await mkdir(folder);
  const server = await startBenchServer(folder, {
    SVC_SSH_CA_KEY_PATH: await makeCaKey(folder),
    ...github.environment,
  });
  await linkInstallation(github, server);
  return server;
}

/**
 * Measures a kind of credential with its key in the server, and then with its key in KMS, if the
 * kind supports that.
 */
async function measureBoth([local, withKms], { inKms, ...kind }, clients, seconds) {
  const figures = [await measureKind(local, kind, clients, seconds)];
  if (inKms !== undefined) {
    const kindInKms = { ...kind, kind: `${kind.kind}, ${inKms}`, peer: undefined };
    figures.push(await measureKind(withKms, kindInKms, clients, seconds));
  }
  return figures;
}

/**
 * Measures one kind of credential with a number of clients, for a number of seconds.
 * @returns the measured numbers, before they are formatted
 */
async function measureKind(server, { kind, path, peer, type }, clients, seconds) {
  const errors = new Map();
  const open = () => openClients(server, path, clients, errors);
  const bareBefore = bareMicroseconds(peer);
  const before = await onRecord(server, type);
  const turn = await measureTurn(
    server.pid,
    { open, sleeps: true },
    { seconds, warmUpSeconds: WARM_UP_SECONDS },
  );
  const bare = (bareBefore + bareMicroseconds(peer)) / 2;
  const after = await onRecord(server, type);
  const failed = [...errors.values()].reduce((sum, count) => sum + count, 0);
  const recorded = after.rows - before.rows;
  if (recorded < turn.acts - failed) throw new Error(`a ${kind} was issued that is not on record`);
  const statements = (after.statements - before.statements) / recorded;
  const what = `${kind}, ${clients} ${clients === 1 ? 'client' : 'clients'}`;
  return { what, peer, turn, seconds, bare, errors, failed, statements };
}

/**
 * Counts the recorded credentials of a type, and the statements that recorded them. PostgreSQL
 * keeps with each row the transaction that wrote it (`xmin`), and the number of the statement in
 * that transaction (`cmin`).
 */
async function onRecord(server, type) {
  const ofType = `audit_events WHERE type = '${type}'`;
  return {
    rows: await server.count(ofType),
    statements: await server.count(
      `(SELECT DISTINCT xmin::text, cmin::text FROM ${ofType}) AS statement`,
    ),
  };
}

function rowOf({ what, peer, turn, seconds, bare, errors, failed, statements }) {
  const acts = turn.latencies.length;
  const together = ((turn.server + turn.postgres) * 1e6) / acts;
  return {
    what,
    'per CPU-second': (1e6 / together).toFixed(0),
    ...cpuColumns(turn, acts),
    'bare signature µs': peer === undefined ? '' : bare.toFixed(0),
    'of the bare signature': peer === undefined ? '' : (together / bare).toFixed(2),
    'statements each': statements.toFixed(3),
    'per second': (acts / seconds).toFixed(0),
    'p50 ms': percentile(turn.latencies, 0.5).toFixed(1),
    'p99 ms': percentile(turn.latencies, 0.99).toFixed(1),
    errors:
      failed === 0 ? '0' : [...errors].map(([name, count]) => `${count} × ${name}`).join(', '),
  };
}

/**
 * Connects clients, each with the token of a session. If there are more clients than sessions, some
 * clients share a session.
 */
function openClients(server, path, number, errors = new Map()) {
  return Array.from({ length: number }, (_, index) => {
    const client = new RawClient(server.baseUrl + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${server.tokens[index % server.tokens.length]}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(bodyOf(path, server)),
    });
    const act = () =>
      client.send().catch(({ message }) => {
        errors.set(message, (errors.get(message) ?? 0) + 1);
      });
    return { act, close: () => client.close() };
  });
}

/**
 * Returns the body of a request. For AWS it names a role if the organization has roles, because the
 * organization then demands one.
 */
function bodyOf(path, { publicKeyLine, roleArn }) {
  if (path.endsWith('/ssh')) return { public_key: publicKeyLine };
  return roleArn === undefined ? {} : { role_arn: roleArn };
}

const BARE = {
  rsa: { digest: 'sha256', rounds: 400, key: generateKeyPairSync('rsa', { modulusLength: 3072 }) },
  ed25519: { digest: null, rounds: 10_000, key: generateKeyPairSync('ed25519') },
};
/**
 * The bytes that a bare signature signs. A token for AWS has about as many bytes before its
 * signature, and an SSH certificate has a third of that.
 */
const MESSAGE = Buffer.alloc(1000, 7);

/**
 * Returns the CPU microseconds of one signature in this process; 0 for a credential without a
 * comparable signature.
 */
function bareMicroseconds(peer) {
  if (peer === undefined) return 0;
  const { digest, rounds, key } = BARE[peer];
  const start = process.cpuUsage();
  for (let i = 0; i < rounds; i += 1) sign(digest, MESSAGE, key.privateKey);
  const { user, system } = process.cpuUsage(start);
  return (user + system) / rounds;
}

/**
 * Links the organization of the clients to an installation of the GitHub App, as an admin would do.
 */
async function linkInstallation(github, { database }) {
  const { id, account } = github.state.install(OWNER, { repositories: ['hello'] });
  const postgres = new Client(database);
  await postgres.connect();
  await postgres.query(
    `INSERT INTO github_installations (id, org_id, account_id, owner, repository_selection, changed_at, linked_by)
     SELECT $1, id, $2, $3, 'selected', now(), id FROM organizations`,
    [id, account.id, OWNER],
  );
  // The requests of this benchmark name no repository, as in releases before 0.10, so that it
  // measures those releases in the same way. Later releases refuse such requests unless this column
  // allows them.
  await postgres
    .query('UPDATE organizations SET github_all_repositories = true')
    .catch(() => undefined);
  await postgres.end();
}
