import { randomBytes, randomUUID } from 'node:crypto';
import { Client as PgClient } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Issuance } from '#domain/access/issuance/issuance.repository.js';
import type { Rate } from '#platform/gcra/gcra.js';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { cliToken, type CliToken } from '../support/cli-token.js';
import { newAddress, type Answer } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { ath, postForm } from '../support/oauth-flow.js';
import { RawConnection } from '../support/raw-connection.js';
import { count, rows } from '../support/rows.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

const PATH = '/v1/credentials/ssh';
const ADA = 'ada@unconfirmed.example';
/** The time that a wait may take on a busy machine, in milliseconds. */
const PATIENT = 10_000;

let database: TestDatabase;
/** The folder with the key of the SSH certificate authority, which both replicas need. */
let dataDir: string;
let app: TestApp;
let ada: EnrolledUser;
let cli: CliToken;
let unbound: CliToken;
beforeAll(async () => {
  database = await createTestDatabase();
  dataDir = await makeTemporaryDirectory();
  app = await startTestApp({ database, environment: { SVC_DATA_DIR: dataDir } });
});
afterAll(async () => {
  await app.close();
  await database.drop();
  await removeDirectory(dataDir);
});

beforeEach(async () => {
  await app.dataSource.query('DELETE FROM users');
  ada = await app.enrolled(ADA);
});

/** Gets a certificate for Ada by some of her tokens, so that the process remembers them. */
async function remember(names: readonly string[]): Promise<void> {
  if (names.some((name) => name.includes('with a DPoP'))) cli = await cliToken(app, ada.key);
  if (names.some((name) => name.includes('without a DPoP')))
    unbound = await cliToken(app, ada.key, { bound: false });
  for (const name of names) {
    const { status, text } = await ask(name);
    if (status !== 200) throw new Error(`${name}: ${text}`);
  }
}

const certificates = () => count(app.dataSource, 'ssh_certificates');
const send = (headers: Record<string, string>, address = newAddress(), body?: unknown) =>
  app.client().post(PATH, body ?? { public_key: newPublicKeyLine() }, {
    address,
    headers: { origin: '', ...headers },
  });
const ownToken = () => ({ authorization: `Bearer ${ada.client.cookie('svc_session')}` });
const proven = (by = cli.dpop, path = PATH, method = 'POST') =>
  by.proof(method, `${app.baseUrl}${path}`, { ath: ath(cli.token) });
const bound = async () => ({ authorization: `DPoP ${cli.token}`, dpop: await proven() });

/** The ways to ask for a certificate: a name, and the request. */
const CALLERS: Readonly<Record<string, (address?: string, body?: unknown) => Promise<Answer>>> = {
  'the own token of a session': (address, body) => send(ownToken(), address, body),
  'a cookie': (address = newAddress(), body) =>
    ada.client.post(PATH, body ?? { public_key: newPublicKeyLine() }, { address }),
  'an access token with a DPoP proof': async (address, body) => send(await bound(), address, body),
  'an access token without a DPoP key': (address, body) =>
    send({ authorization: `Bearer ${unbound.token}` }, address, body),
};
const NAMES = Object.keys(CALLERS);
const ask = (name: string, address?: string, body?: unknown) =>
  (CALLERS[name] as (typeof CALLERS)[string])(address, body);

/** Makes the limit of an address used up in the database, of which the process does not know. */
async function exhausted(tier = 'issuance'): Promise<string> {
  const address = newAddress();
  await app.dataSource.query(
    `INSERT INTO rate_limits (bucket, tat, admitted) VALUES ($1, now() + interval '40 s', true)`,
    [`${tier} ${address}`],
  );
  return address;
}

/**
 * Sends requests at once, and returns how many were admitted. They must be one burst, and one more
 * for each interval that has passed meanwhile on a busy machine.
 */
async function admittedAtOnce(
  requests: number,
  { burst, interval }: Rate,
  request: (n: number) => Promise<Answer>,
): Promise<number> {
  const begun = performance.now();
  const answers = await Promise.all(Array.from({ length: requests }, (_, n) => request(n)));
  const more = Math.floor((performance.now() - begun) / interval);
  const admitted = answers.filter(({ status }) => status === 200).length;
  expect(admitted).toBeGreaterThanOrEqual(burst);
  expect(admitted).toBeLessThanOrEqual(burst + more);
  return admitted;
}

/** The tables that the limit, the look-up of a caller and the certificate need. */
const TABLES = /INTO rate_limits|INTO oauth_replays|JOIN sessions s|INTO ssh_certificates /;

/**
 * Returns the number of statements that a request sends about its limit, its caller and the
 * certificate. Statements of the background work of the application are left out.
 */
async function statementsOf(request: () => Promise<Answer>): Promise<number> {
  const query = vi.spyOn(PgClient.prototype, 'query');
  try {
    expect((await request()).status).toBe(200);
    return query.mock.calls.filter(([sent]) =>
      TABLES.test((sent as { readonly text?: string }).text ?? ''),
    ).length;
  } finally {
    query.mockRestore();
  }
}

describe.each(NAMES)('a certificate for a caller that the process remembers, by %s', (name) => {
  beforeEach(() => remember([name]));

  it('costs one statement, which counts it in the limit of its address', async () => {
    const address = newAddress();
    expect(await statementsOf(() => ask(name, address))).toBe(1);
    const stranger = await app.enrolled('new@unconfirmed.example');
    const first = () => stranger.client.post(PATH, { public_key: newPublicKeyLine() });
    expect(await statementsOf(first)).toBe(3);
    const { burst } = TIERS.issuance;
    const answer = await ask(name, address);
    expect(answer.headers.get('x-ratelimit-remaining')).toBe(String(burst - 2));
  });

  it.each<[string, string, string]>([
    ['the session ends', `DELETE FROM sessions`, 'unauthenticated'],
    ['the session expires', `UPDATE sessions SET expires_at = now()`, 'unauthenticated'],
    ['the person is deactivated', `UPDATE users SET active = false`, 'unauthenticated'],
    ['the person is removed', `DELETE FROM users`, 'unauthenticated'],
    [
      'the session is no longer by a key',
      `UPDATE sessions SET level = 'bootstrap', authenticator_id = NULL, auth_time = NULL`,
      'hardware_required',
    ],
  ])('is refused as soon as %s', async (_, end, code) => {
    const before = await certificates();
    await app.dataSource.query(end);
    const answers = [await ask(name), await ask(name)];
    // A session that is not by a key has no access token, so its DPoP token is an unknown one.
    const isUnknown = code === 'hardware_required' && name.includes('DPoP proof');
    const expected = isUnknown ? 'unauthenticated' : code;
    expect(answers.map(({ json }) => json.code as string)).toEqual([expected, expected]);
    expect(await certificates()).toBeLessThanOrEqual(before);
  });

  it('is named by the log while the session lasts, and not after it has ended', async () => {
    const lines = () => app.log.filter((line) => line.includes(`POST ${PATH} `));
    const [user] = await rows<{ id: string }>(app.dataSource, 'SELECT id FROM users');
    const named = `"user_id":"${user?.id}"`;
    const last = async (status: number) => {
      await vi.waitFor(() => expect(lines().at(-1)).toContain(`"status":${status}`), PATIENT);
      return lines().at(-1);
    };
    expect((await ask(name)).status).toBe(200);
    expect(await last(200)).toContain(named);
    expect((await ask(name, await exhausted())).status).toBe(429);
    expect(await last(429)).not.toContain(named);
    await app.dataSource.query('DELETE FROM sessions');
    expect((await ask(name)).status).toBe(401);
    expect(await last(401)).not.toContain(named);
  });

  it('names the new address of a person, and never the remembered one', async () => {
    await app.dataSource.query(`UPDATE users SET email = 'new@unconfirmed.example'`);
    const answer = await ask(name);
    expect(answer.json).toMatchObject({ key_id: 'new@unconfirmed.example@localhost' });
  });

  it('gets the principals of the new address of a person, and no refusal by the remembered one', async () => {
    const email = 'new@unconfirmed.example';
    await app.dataSource.query('UPDATE users SET email = $1', [email]);
    const asked = { public_key: newPublicKeyLine(), principals: [email] };
    const answer = await ask(name, newAddress(), asked);
    expect([answer.status, answer.json.principals]).toEqual([200, [email]]);
  });

  it('gets a certificate though the remembered account had no e-mail address', async () => {
    await app.dataSource.query('UPDATE users SET email = NULL');
    expect((await ask(name)).json.code).toBe('issuance_refused');
    await app.dataSource.query('UPDATE users SET email = $1', [ADA]);
    expect((await ask(name)).json).toMatchObject({ key_id: `${ADA}@localhost` });
  });

  it('gets 503 if the answer of the statement is lost, also if its proof is spent by then', async () => {
    const issuance = app.nest.get(Issuance);
    const decide = issuance.decideUnlocked.bind(issuance);
    const losing = vi.spyOn(issuance, 'decideUnlocked').mockImplementationOnce(async (...asked) => {
      await decide(...asked);
      throw new Error('Connection terminated unexpectedly');
    });
    const lost = await ask(name);
    losing.mockRestore();
    expect([lost.status, lost.json.code]).toEqual([503, 'unavailable']);
    expect(lost.headers.get('x-ratelimit-remaining')).not.toBeNull();
  });

  it('is refused by the limit before anything else, and records nothing', async () => {
    const before = await certificates();
    const addresses = [await exhausted(), await exhausted(), await exhausted()];
    const bodies = [undefined, { public_key: 'no key' }, '{'];
    const answers = await Promise.all(addresses.map((address, n) => ask(name, address, bodies[n])));
    expect(answers.map(({ status }) => status)).toEqual([429, 429, 429]);
    for (const { headers } of answers)
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await certificates()).toBe(before);
    const [booked] = await rows<{ n: number }>(
      app.dataSource,
      `SELECT count(*)::int AS n FROM rate_limits WHERE bucket = ANY ($1) AND holders <> '{}'`,
      [addresses.map((address) => `issuance ${address}`)],
    );
    expect(booked?.n).toBe(3);
  });

  it('costs a place of the limit also if its key is refused or its statement fails', async () => {
    const address = newAddress();
    const { burst } = TIERS.issuance;
    const faulty = await ask(name, address, { public_key: 'no key' });
    expect([faulty.status, faulty.headers.get('x-ratelimit-remaining')]).toEqual([
      400,
      String(burst - 1),
    ]);
    await app.dataSource.query(
      'ALTER TABLE ssh_certificates ADD CONSTRAINT none CHECK (serial < 0) NOT VALID',
    );
    const before = await certificates();
    const failed = await ask(name, address);
    await app.dataSource.query('ALTER TABLE ssh_certificates DROP CONSTRAINT none');
    expect([failed.status, failed.headers.get('x-ratelimit-remaining')]).toEqual([
      500,
      String(burst - 2),
    ]);
    expect(await certificates()).toBe(before);
  });

  it('of 20 requests at once from one address, one burst is admitted', async () => {
    const [before, address] = [await certificates(), newAddress()];
    const admitted = await admittedAtOnce(20, TIERS.issuance, () => ask(name, address));
    expect(await certificates()).toBe(before + admitted);
  });
});

describe('the access token of a caller that the process remembers', () => {
  beforeEach(() => remember(NAMES));

  it.each(['an access token with a DPoP proof', 'an access token without a DPoP key'])(
    'opens nothing after its revocation, though its session goes on: %s',
    async (name) => {
      const before = await certificates();
      await app.dataSource.query(`DELETE FROM oauth_artifacts WHERE model = 'AccessToken'`);
      expect((await ask(name)).json.code).toBe('unauthenticated');
      expect(await certificates()).toBe(before);
      expect((await ask('the own token of a session')).status).toBe(200);
    },
  );

  it('opens nothing after a revocation by RFC 7009', async () => {
    const fields = { token: unbound.token, client_id: 'svc-cli' };
    expect((await postForm(app, '/oauth/revoke', fields)).status).toBe(200);
    expect((await ask('an access token without a DPoP key')).status).toBe(401);
  });

  it('opens nothing by a DPoP proof of another key, URL or method', async () => {
    const before = await certificates();
    const other = (await cliToken(app, ada.key)).dpop;
    const proofs = [
      await proven(other),
      await proven(cli.dpop, '/v1/credentials/aws'),
      await proven(cli.dpop, PATH, 'GET'),
    ];
    for (const dpop of proofs) {
      const answer = await send({ authorization: `DPoP ${cli.token}`, dpop });
      expect([answer.status, answer.json.code]).toEqual([401, 'invalid_dpop_proof']);
    }
    const without = await send({ authorization: `DPoP ${cli.token}` });
    expect(without.json.code).toBe('invalid_dpop_proof');
    const asBearer = await send({ authorization: `Bearer ${cli.token}` });
    expect(asBearer.json.code).toBe('unauthenticated');
    expect(await certificates()).toBe(before);
  });

  it('opens one certificate by one proof, of 20 requests at once', async () => {
    const before = await certificates();
    const headers = await bound();
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(headers)));
    const issued = answers.filter(({ status }) => status === 200);
    expect(issued).toHaveLength(1);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 401]));
    expect(await certificates()).toBe(before + 1);
    expect((await send(headers)).json.code).toBe('invalid_dpop_proof');
  });

  it('spends the proof of a request that is denied, and asks for no second one', async () => {
    const key = { public_key: newPublicKeyLine(), principals: [`root@prod:${randomUUID()}`] };
    const headers = await bound();
    const denied = await send(headers, newAddress(), key);
    expect([denied.status, denied.json.code]).toEqual([403, 'principal_not_allowed']);
    expect((await send(headers)).json.code).toBe('invalid_dpop_proof');
  });

  it('gets the newest notice about the account, and not the remembered one', async () => {
    const name = 'an access token with a DPoP proof';
    await app.dataSource.query('DELETE FROM account_notices');
    const before = await ask(name);
    expect(before.headers.get('svc-notice')).toBeNull();
    expect(before.headers.get('svc-version')).not.toBeNull();
    await rows(
      app.dataSource,
      `INSERT INTO account_notices (id, user_id, type, subject_id, created_at, audit_id)
       SELECT gen_random_uuid(), id, 'key_registered', id, now(), gen_random_uuid() FROM users`,
    );
    expect((await ask(name)).headers.get('svc-notice')).toMatch(/^type=key_registered, id="/);
    await app.dataSource.query('DELETE FROM account_notices');
    expect((await ask(name)).headers.get('svc-notice')).toBeNull();
  });
});

describe('two replicas that remember a caller', () => {
  let second: TestApp;
  beforeAll(async () => {
    second = await startTestApp({ database, environment: { SVC_DATA_DIR: dataDir } });
  });
  afterAll(() => second.close());

  const askAt = (replica: TestApp, address = newAddress()) =>
    replica
      .client()
      .post(
        PATH,
        { public_key: newPublicKeyLine() },
        { address, headers: { ...ownToken(), origin: '' } },
      );

  beforeEach(() => Promise.all([askAt(app), askAt(second)])); // now both remember Ada

  it('admit one burst of 20 requests at once at each of them', async () => {
    const [before, address] = [await certificates(), newAddress()];
    const admitted = await admittedAtOnce(40, TIERS.issuance, (n) =>
      askAt(n % 2 === 0 ? app : second, address),
    );
    expect(await certificates()).toBe(before + admitted);
  });

  it('both refuse a session that ended at one of them', async () => {
    expect((await Promise.all([askAt(app), askAt(second)])).map(({ status }) => status)).toEqual([
      200, 200,
    ]);
    const [own] = await rows<{ id: string }>(
      app.dataSource,
      'SELECT id FROM sessions WHERE client_id IS NULL',
    );
    const ended = await second.client().send('DELETE', `/v1/sessions/${own?.id ?? ''}`, {
      headers: { ...ownToken(), origin: '' },
    });
    expect(ended.status).toBe(204);
    const answers = await Promise.all([askAt(app), askAt(second)]);
    expect(answers.map(({ status }) => status)).toEqual([401, 401]);
  });
});

it('a body that ends too early costs a place of the limit', async () => {
  await remember(['the own token of a session']);
  const address = newAddress();
  const connection = new RawConnection(app.baseUrl);
  connection.socket.write(
    `POST ${PATH} HTTP/1.1\r\nHost: ${new URL(app.baseUrl).host}\r\nX-Forwarded-For: ${address}\r\nContent-Type: application/json\r\n` +
      `Authorization: ${ownToken().authorization}\r\nContent-Length: 100\r\n\r\n{`,
  );
  connection.socket.end();
  await vi.waitFor(async () => {
    expect(await count(app.dataSource, `rate_limits WHERE bucket = 'issuance ${address}'`)).toBe(1);
  }, PATIENT);
});

describe('a read for a caller that the process remembers', () => {
  let tenant: ScimTenant;
  beforeEach(async () => {
    tenant = await addTenant(app);
    await read(); // now the process remembers the token
  });
  const read = (path = '/Users?count=1', address = newAddress(), token = tenant.token) =>
    app.client().get(`/scim/v2${path}`, { address, headers: { authorization: `Bearer ${token}` } });

  it.each(['/Users?count=1', `/Users/${randomUUID()}`, '/Groups', `/Groups/${randomUUID()}`])(
    'of %s is refused by the limit first, then by the end of its token',
    async (path) => {
      expect((await read(path, await exhausted('general'))).status).toBe(429);
      await app.dataSource.query('UPDATE scim_tokens SET revoked_at = now()');
      expect((await read(path, await exhausted('general'))).status).toBe(429);
      const answers = [await read(path), await read(path)];
      expect(answers.map(({ status }) => status)).toEqual([401, 401]);
      for (const { json } of answers) expect(JSON.stringify(json)).not.toContain('userName');
    },
  );

  it('shows nothing of another organization', async () => {
    const other = await addTenant(app);
    const users = await read('/Users', newAddress(), other.token);
    const [foreign] = users.json.Resources as { id: string }[];
    expect((await read(`/Users/${foreign?.id ?? randomUUID()}`)).status).toBe(404);
  });

  it('counts each request of 30 at once in its limit', async () => {
    const address = newAddress();
    const admitted = await admittedAtOnce(30, TIERS.general, () => read('/Groups', address));
    expect(admitted).toBeLessThan(30);
  });
});

describe('an introspection, which has no session', () => {
  it('is refused by the limit before its client', async () => {
    const address = await exhausted('general');
    const fields = { token: randomBytes(8).toString('hex'), client_id: 'no-client' };
    const options = {
      address,
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: '' },
    };
    const body = new URLSearchParams(fields).toString();
    expect((await app.client().post('/oauth/introspect', body, options)).status).toBe(429);
    const other = { ...options, address: newAddress() };
    expect((await app.client().post('/oauth/introspect', body, other)).status).toBe(401);
  });
});
