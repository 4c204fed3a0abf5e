import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startDatabaseProxy, type DatabaseProxy } from '../support/database-proxy.js';
import { parseAnswer, rawExchange, requestBytes, type RawAnswer } from '../support/raw-http.js';
import { API_SCOPES } from '../../src/domain/directory/api-tokens/api-tokens.repository.js';
import { madeApiToken, TEST_NETWORKS } from '../support/api-tokens.js';
import { orgApi } from '../support/org-api.js';
import { foundOrganization } from '../support/scim-organization.js';
import type { Described } from '../support/traffic/comparison.js';

/**
 * An operation of the OpenAPI document, with the members that this file needs to send a request to
 * it.
 */
interface Operation {
  readonly label: string;
  readonly method: string;
  readonly path: string;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly requestBody?: { readonly content: Readonly<Record<string, object>> };
  readonly responses: Described['paths'][string][string]['responses'];
}

/** The parts of a request that differ from the valid request of its operation. */
interface Change {
  readonly credential?: string;
  readonly headers?: readonly string[];
  readonly host?: readonly string[];
  readonly query?: string | undefined;
  readonly type?: string;
  readonly body?: string;
  /** A `Content-Length` that is not the length of the body. */
  readonly length?: number;
  readonly address?: string;
}

/** Valid values of path parameters that name nothing. */
const NOTHING: Readonly<Record<string, string>> = { serial: '1', domain: 'nobody.example' };

/** A body that creates an API token for a SCIM token that does not exist. */
const NEW_API_TOKEN = JSON.stringify({
  name: 'x',
  scopes: ['scim-tokens:rotate'],
  allowed_cidrs: ['192.0.2.0/24'],
  scim_token_ids: ['00000000-0000-7000-8000-000000000000'],
});

/** Bodies that pass validation, by the label of the operation. */
const BODIES: readonly (readonly [RegExp, string])[] = [
  [/^POST \/api\/v1\/org\/members\/readmit$/, '{"email":"bob@acme.example"}'],
  [/^POST \/api\/v1\/org\/scim-tokens$/, '{"description":"x","replaces":"none"}'],
  [/^POST \/api\/v1\/org\/api-tokens$/, NEW_API_TOKEN],
  [/^PATCH \/v1\/keys\//, '{"name":"a key"}'],
  [/^PATCH \/scim/, '{"Operations":[{"op":"replace","value":{"displayName":"x"}}]}'],
  [/^(?:POST|PUT) \/scim\/v2\/Users/, '{"userName":"a@b.example"}'],
  [/^(?:POST|PUT) \/scim\/v2\/Groups/, '{"displayName":"g"}'],
  [/^POST \/scim\/v2\/Bulk/, '{"Operations":[]}'],
  [/^(?:POST|PUT) \/oauth\/register/, '{"redirect_uris":["https://client.example/back"]}'],
  [/^PATCH \/api\/v1\/org\/issuer/, '{"active":true}'],
  [
    /^(?:PUT|POST) \/api\/v1\/org\/access\/\{kind\}/,
    '{"access":"everyone","conditions":{},"assignments":[]}',
  ],
  [/ /, '{}'],
];

const FORM = 'application/x-www-form-urlencoded';
const FIELDS = new URLSearchParams({
  grant_type: 'client_credentials',
  token: 'x',
  client_id: 'nobody',
}).toString();

/**
 * Returns a valid body for an operation and its media type, or undefined if the operation takes
 * none.
 */
function bodyOf({ label, requestBody }: Operation): { type: string; body: string } | undefined {
  const [type] = Object.keys(requestBody?.content ?? {});
  if (type === undefined) return undefined;
  if (type === FORM) return { type, body: FIELDS };
  return { type, body: BODIES.find(([pattern]) => pattern.test(label))?.[1] ?? '{}' };
}

function operationsOf({ paths, components }: Described): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const responses = Object.entries(operation.responses).map(([status, one]) => [
        status,
        one.$ref ? components.responses[one.$ref.split('/').at(-1) ?? ''] : one,
      ]);
      return {
        ...(operation as unknown as Operation),
        label: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path: path.replaceAll(/\{(\w+)\}/g, (_, name: string) => NOTHING[name] ?? randomUUID()),
        responses: Object.fromEntries(responses) as Operation['responses'],
      };
    }),
  );
}

const usesSession = ({ security }: Operation) => security.some((one) => 'sessionCookie' in one);
const usesScim = ({ security }: Operation) => security.some((one) => 'scimToken' in one);
const usesApiToken = ({ security }: Operation) => security.some((one) => 'apiToken' in one);
const isNoAuth = (one: Operation) =>
  !usesSession(one) && !usesScim(one) && !usesApiToken(one) && !isHeaderOnly(one);
const isHeaderOnly = ({ label }: Operation) => label === 'GET /v1/credentials/aws/token';

/** The application under test, with credentials and the operations of its document. */
interface Stage {
  readonly app: TestApp;
  readonly admin: EnrolledUser;
  readonly scimToken: string;
  /** An API token with every scope. */
  readonly apiToken: string;
  readonly operations: readonly Operation[];
}

async function newStage(options: Parameters<typeof startTestApp>[0] = {}): Promise<Stage> {
  const app = await startTestApp(options);
  const { admin, token } = await foundOrganization(app, 'acme.example');
  const { tokens } = (await orgApi(admin.client, 'GET', '/scim-tokens')).json;
  const { token: apiToken } = await madeApiToken(admin.client, API_SCOPES, {
    allowed_cidrs: TEST_NETWORKS,
    scim_token_ids: [tokens[0].id],
  });
  const { json } = await app.client().get('/openapi.json');
  const operations = operationsOf(json as Described);
  return { app, admin, scimToken: token, apiToken, operations };
}

/** Returns the valid request of an operation with changes, as the bytes that are sent. */
function requestOf(stage: Stage, operation: Operation, change: Change = {}): string {
  const { app, admin, scimToken, apiToken } = stage;
  const session = `Bearer ${admin.client.cookie('svc_session')}`;
  const ofProgram = usesApiToken(operation) ? `Bearer ${apiToken}` : session;
  const own = usesScim(operation) ? `Bearer ${scimToken}` : ofProgram;
  const credential = change.credential ?? (isNoAuth(operation) ? wrongProof(operation) : own);
  const usual = bodyOf(operation);
  const body = change.body ?? usual?.body ?? '';
  const length = change.length ?? Buffer.byteLength(body);
  return requestBytes(
    app.baseUrl,
    `${operation.method} ${operation.path}${change.query ?? ''}`,
    [
      ...(change.host ?? [new URL(app.baseUrl).host]).map((host) => `Host: ${host}`),
      `X-Forwarded-For: ${change.address ?? newAddress()}`,
      ...(credential === '' ? [] : [`Authorization: ${credential}`]),
      ...(usual || change.type ? [`Content-Type: ${change.type ?? usual?.type}`] : []),
      ...(length > 0 ? [`Content-Length: ${length}`] : []),
      ...(change.headers ?? []),
    ],
    body,
  );
}

/** The query strings of operations that require one, by the end of the path. */
const QUERIES = [
  ['/access/check', '?user=x&kind=host_group&id=x'],
  ['/audit-checkpoints/proof', '?epoch=1&from=1&to=2'],
] as const;

/** The Basic credentials of a client that does not exist. */
const CLIENT = `Basic ${Buffer.from('nobody:secret').toString('base64')}`;

/** Returns the `Authorization` header of a token or a client that does not exist. */
function wrongProof({ path }: Operation): string {
  return /register|userinfo/.test(path) ? 'Bearer wrong' : CLIENT;
}

/**
 * Sends each operation that documents a status a request that should get it, and expects it in each
 * documented media type. Returns the number of requests.
 */
async function expectEach(
  stage: Stage,
  status: number,
  changeOf: (operation: Operation) => Change | undefined,
): Promise<number> {
  const wrong: string[] = [];
  let count = 0;
  for (const operation of stage.operations) {
    const response = operation.responses[String(status)];
    const change = response && changeOf(operation);
    if (!response || !change) continue;
    const types = Object.keys(response.content ?? {});
    for (const type of types) {
      count += 1;
      const accept =
        types.length > 1 ? [`Accept: ${type === 'text/html' ? type : 'application/json'}`] : [];
      const headers = [...accept, ...(change.headers ?? [])];
      const bytes = requestOf(stage, operation, { ...change, headers });
      let answer = await rawExchange(stage.app.baseUrl, bytes);
      // The rate limit allows a request again after some time. So a request that should get 429 is
      // sent up to six times.
      const most = status === 429 ? 5 : 0;
      for (let again = 0; again < most && answer.status !== 429; again += 1) {
        answer = await rawExchange(stage.app.baseUrl, bytes);
      }
      const met = `${answer.status} ${answer.header('content-type')?.split(';')[0]}`;
      if (met !== `${status} ${type}`)
        wrong.push(`${operation.label}: ${met}, not ${status} ${type}`);
    }
  }
  expect(wrong).toEqual([]);
  return count;
}

describe('the refusals that the document states are met at every operation', () => {
  let stage: Stage;
  let bootstrap: string;

  beforeAll(async () => {
    stage = await newStage();
    const visitor = stage.app.client();
    await visitor.signIn('ada@other.example');
    bootstrap = `svc_session=${visitor.cookie('svc_session')}`;
  });

  // Sets the last touch to now, because some routes demand one within the last minute.
  beforeEach(() => stage.app.dataSource.query('UPDATE sessions SET auth_time = now()'));

  afterAll(() => stage.app.close());

  it('400 for a request that names two hosts', async () => {
    const host = new URL(stage.app.baseUrl).host;
    expect(await expectEach(stage, 400, () => ({ host: [host, host] }))).toBeGreaterThan(80);
  });

  it('400 with the name of the parameter for a query that /v1 and /api/v1 do not know', async () => {
    const strict = stage.operations.filter(
      ({ path, label }) => /^\/(?:api\/)?v1\//.test(path) && !label.endsWith('/github/callback'),
    );
    expect(strict.length).toBeGreaterThan(45);
    for (const operation of strict) {
      const bytes = requestOf(stage, operation, { query: '?zz=1' });
      const { status, body } = await rawExchange(stage.app.baseUrl, bytes);
      expect([operation.label, status], body).toEqual([operation.label, 400]);
      expect(JSON.parse(body).detail).toMatch(/^zz: unknown/);
    }
  });

  it('401 without a session, with a wrong client, or with a wrong token', async () => {
    const tried = await expectEach(stage, 401, (operation) =>
      operation.path.startsWith('/api/webhooks') || operation.label === 'POST /oauth/device'
        ? undefined
        : { credential: isNoAuth(operation) ? wrongProof(operation) : '' },
    );
    expect(tried).toBeGreaterThan(70);
  });

  it('403 in a session without a key, and where a filter is not allowed', async () => {
    await expectEach(stage, 403, (operation) => {
      if (usesScim(operation)) return { query: '?filter=x' };
      if (usesSession(operation)) {
        return {
          credential: '',
          headers: [`Cookie: ${bootstrap}`, `Origin: ${stage.app.baseUrl}`],
        };
      }
      return isHeaderOnly(operation)
        ? { credential: `Bearer ${bootstrap.slice('svc_session='.length)}` }
        : undefined;
    });
  });

  it('403 for a write of a browser from another origin', async () => {
    const cookie = `Cookie: svc_session=${stage.admin.client.cookie('svc_session')}`;
    const tried = await expectEach(stage, 403, (operation) =>
      usesSession(operation) && operation.method !== 'GET'
        ? { credential: '', headers: [cookie, 'Origin: https://evil.example'] }
        : undefined,
    );
    expect(tried).toBeGreaterThan(30);
  });

  it('404 for what does not exist', async () => {
    const tried = await expectEach(stage, 404, ({ path, label }) =>
      /issuer|github|providers$/.test(path) && label !== 'DELETE /api/v1/org/issuer'
        ? undefined
        : { query: QUERIES.find(([end]) => path.endsWith(end))?.[1] },
    );
    expect(tried).toBeGreaterThan(20);
  });

  it('409 for a page of another session', async () => {
    const header = { headers: [`svc-session: ${randomUUID()}`] };
    await expectEach(stage, 409, (operation) =>
      usesSession(operation) || isHeaderOnly(operation) ? header : undefined,
    );
  });

  it('413 for a body that is announced as too large', async () => {
    expect(await expectEach(stage, 413, () => ({ length: 20_000_000 }))).toBeGreaterThan(80);
  });

  it('415 for a body of another media type', async () => {
    await expectEach(stage, 415, () => ({ type: 'text/plain', body: 'x' }));
  });

  it('417 for another expectation, and 421 for another host', async () => {
    await expectEach(stage, 417, () => ({ headers: ['Expect: miracles'] }));
    await expectEach(stage, 421, () => ({ host: ['other.example'] }));
  });

  it('429 for an address that sent too much', async () => {
    const address = newAddress();
    for (const path of ['/v1/keys', '/v1/credentials/ssh/challenge', '/oauth/token']) {
      const operation = stage.operations.find((one) => one.path === path);
      if (!operation) throw new Error(`${path} is gone`);
      for (let i = 0; i < 60; i += 1) {
        const bytes = requestOf(stage, operation, { address });
        const { status } = await rawExchange(stage.app.baseUrl, bytes);
        if (status === 429 && i > 40) break;
      }
    }
    expect(await expectEach(stage, 429, () => ({ address }))).toBeGreaterThan(80);
  });
});

describe('SCIM in plain JSON, for a client that accepts it alone', () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await newStage();
  });

  afterAll(() => stage.app.close());

  /** Sends a SCIM request that accepts `application/json`, and expects this status and type. */
  async function scim(status: number, method: string, path: string, body?: object) {
    const answer = await stage.app.client().send(method, `/scim/v2${path}`, {
      ...(body ? { body } : {}),
      headers: {
        authorization: `Bearer ${stage.scimToken}`,
        accept: 'application/json',
        origin: '',
      },
    });
    expect([path, answer.status]).toEqual([path, status]);
    expect(answer.headers.get('content-type')).toBe('application/json');
    return answer.json as { readonly id: string };
  }

  it('is the media type of every response with a resource or a list', async () => {
    expect.hasAssertions();
    const operations = [{ op: 'replace', path: 'displayName', value: 'changed' }];
    for (const [kind, resource] of [
      ['/Users', { userName: 'grace@acme.example' }],
      ['/Groups', { displayName: 'a group' }],
    ] as const) {
      const { id } = await scim(201, 'POST', kind, resource);
      await scim(200, 'GET', `${kind}/${id}`);
      await scim(200, 'GET', kind);
      await scim(200, 'POST', `${kind}/.search`, {});
      await scim(200, 'PUT', `${kind}/${id}`, resource);
      await scim(200, 'PATCH', `${kind}/${id}?attributes=displayName`, { Operations: operations });
    }
    await scim(200, 'GET', '');
    await scim(200, 'POST', '/.search', {});
    await scim(200, 'POST', '/Bulk', { Operations: [] });
    for (const path of ['/ServiceProviderConfig', '/Schemas', '/ResourceTypes']) {
      await scim(200, 'GET', path);
    }
    await scim(200, 'GET', '/ResourceTypes/User');
    await scim(200, 'GET', '/Schemas/urn:ietf:params:scim:schemas:core:2.0:User');
  });
});

/** The number of requests that time out at the same time. */
const LATE = 40;

describe('the faults that the document states are met at every operation', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  let stage: Stage;

  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await startDatabaseProxy(database.url);
    stage = await newStage({
      database: { ...database, url: proxy.url },
      timeouts: { request: 2000, linger: 500 },
      // more than LATE, because each request that waits holds one
      environment: { SVC_DB_MAX_CONNECTIONS: '60' },
    });
  });

  afterAll(async () => {
    await stage.app.close();
    await proxy.close();
    await database.drop();
  });

  it('408 where the database is too slow, or the body does not arrive', async () => {
    const late = stage.operations.filter(({ responses }) => responses['408']);
    const answers: (readonly [string, string | undefined, RawAnswer])[] = [];
    // In portions, because each waiting request holds a connection to the database, and because
    // PostgreSQL ends a transaction that holds its locks too long.
    for (let i = 0; i < late.length; i += LATE) {
      const runner = stage.app.dataSource.createQueryRunner();
      await runner.startTransaction();
      await runner.query('LOCK TABLE sessions, scim_tokens, api_tokens IN ACCESS EXCLUSIVE MODE');
      const some = late.slice(i, i + LATE).map(async (operation) => {
        const change = isNoAuth(operation) ? { length: 5000 } : {};
        const bytes = requestOf(stage, operation, change);
        const [type] = Object.keys(operation.responses['408']?.content ?? {});
        return [operation.label, type, await exchangeSlowly(stage.app.baseUrl, bytes)] as const;
      });
      answers.push(...(await Promise.all(some)));
      await runner.rollbackTransaction();
      await runner.release();
    }
    const wrong = answers.filter(
      ([, type, { status, header }]) =>
        status !== 408 || header('content-type')?.split(';')[0] !== type,
    );
    expect(wrong.map(([label, , { status }]) => `${label} ${status}`)).toEqual([]);
    expect(answers.length).toBeGreaterThan(80);
  });

  it('500 where the database lacks its tables', async () => {
    // New connections of the service read the table `database_identity`, and are refused without
    // it.
    await stage.app.dataSource.query(
      `ALTER SCHEMA public RENAME TO elsewhere; CREATE SCHEMA public;
       ALTER TABLE elsewhere.database_identity SET SCHEMA public`,
    );
    try {
      await expectEach(stage, 500, ({ path }) => (path.includes('webhooks') ? undefined : {}));
    } finally {
      await stage.app.dataSource.query(
        `ALTER TABLE public.database_identity SET SCHEMA elsewhere; DROP SCHEMA public;
         ALTER SCHEMA elsewhere RENAME TO public`,
      );
    }
  });

  it('503 while the database is away', async () => {
    await proxy.down();
    await expectEach(stage, 503, ({ path }) => (path.includes('webhooks') ? undefined : {}));
    await proxy.up();
  });
});

/** Sends bytes, keeps the connection open, and returns the response when the server closes it. */
async function exchangeSlowly(baseUrl: string, bytes: string): Promise<RawAnswer> {
  const socket = connect({ host: 'localhost', port: Number(new URL(baseUrl).port) });
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (received += chunk));
  socket.on('error', () => undefined);
  socket.write(bytes);
  await once(socket, 'close');
  return parseAnswer(received);
}
