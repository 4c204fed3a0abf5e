import { setTimeout as delay } from 'node:timers/promises';
import { onDebianPostgres } from './debian-server.js';
import { table } from './measure.js';
import { registerApplications } from './oauth-person.js';

const READ_ONLY_SECONDS = 20;
const MOST_SECONDS_BACK = 2;
const CLIENTS = 8;

/** The pauses of a client between two requests of each kind, in milliseconds. */
const PAUSES = { certificate: 20, keys: 100, token: 100, scim: 100 };

/**
 * The only kind of request that writes nothing, so that it may be answered while the database is
 * read-only.
 */
const READ = 'keys';

/**
 * Makes PostgreSQL read-only during a load of certificates, tokens, changes by SCIM and reads, and
 * records the answers and the readiness. It fails if a write succeeds in that time, or if an error
 * is anything but a 503 with `retry-after`. It also fails if the service does not recover within 2
 * s.
 */
export async function run(seconds = String(READ_ONLY_SECONDS)) {
  await onDebianPostgres(async ({ server, ask }) => {
    const answers = [];
    const load = { over: false };
    const requests = await requestsTo(server);
    const send = async (kind, token) => {
      const { path, method, headers, body } = requests[kind](token);
      const began = performance.now();
      const response = await fetch(`${server.baseUrl}${path}`, {
        method,
        headers: {
          ...headers,
          'x-forwarded-for': `10.1.${(answers.length >> 8) & 255}.${answers.length & 255}`,
        },
        body,
      });
      await response.arrayBuffer();
      const retry = response.headers.get('retry-after') !== null;
      answers.push({ kind, at: performance.now(), began, status: response.status, retry });
    };
    const repeat = async (kind, token) => {
      while (!load.over) {
        await send(kind, token);
        await delay(PAUSES[kind]);
      }
    };
    const clients = [
      ...server.tokens.slice(0, CLIENTS).map((token) => repeat('certificate', token)),
      ...['keys', 'token', 'scim'].map((kind, n) => repeat(kind, server.tokens[CLIENTS + n])),
    ];
    const isReady = async () => (await fetch(`${server.baseUrl}/health/ready`)).status === 200;
    await delay(2_000);
    const from = performance.now();
    await ask(
      'postgres',
      'ALTER SYSTEM SET default_transaction_read_only = on',
      'SELECT pg_reload_conf()',
    );
    // PostgreSQL's processes read the changed setting one after another, so this waits until the
    // last process has read it.
    await delay(1_000);
    let timesReady = 0;
    const settled = performance.now();
    while (performance.now() < settled + Number(seconds) * 1000) {
      if (await isReady()) timesReady += 1;
      await delay(500);
    }
    const until = performance.now();
    await ask(
      'postgres',
      'SET default_transaction_read_only = off',
      'ALTER SYSTEM RESET default_transaction_read_only',
      'SELECT pg_reload_conf()',
    );
    const ended = performance.now();
    while (!(await isReady())) await delay(20);
    const ready = (performance.now() - ended) / 1000;
    await delay(3_000);
    load.over = true;
    await Promise.all(clients);
    const during = answers.filter(({ began, at }) => began > settled && at < until);
    const wrong = answers.filter(
      ({ status, retry }) => status !== 200 && !(status === 503 && retry),
    );
    const served = during.filter(({ kind, status }) => kind !== READ && status !== 503);
    const kinds = Object.keys(Object.groupBy(during, ({ kind }) => kind));
    const failed = answers.filter(({ at, status }) => at > ended && status !== 200);
    const back = (Math.max(ended, ...failed.map(({ at }) => at)) - ended) / 1000;
    const row = {
      'read-only s': ((ended - from) / 1000).toFixed(1),
      answers: during.length,
      'kinds of requests': kinds.length,
      '503 with retry-after': during.filter(({ status, retry }) => status === 503 && retry).length,
      'writes that were served': served.length,
      'other faults': wrong.length,
      'times ready': timesReady,
      'ready again s': ready.toFixed(2),
      'last fault s': back.toFixed(2),
    };
    const statuses = Object.groupBy(wrong, ({ status }) => status);
    for (const [status, { length }] of Object.entries(statuses))
      process.stdout.write(`${length} answers with status ${status}\n`);
    process.stdout.write(`${table([row])}\n`);
    const isRight =
      wrong.length === 0 && served.length === 0 && kinds.length === Object.keys(PAUSES).length;
    if (!isRight || timesReady > 0 || Math.max(ready, back) > MOST_SECONDS_BACK)
      throw new Error(
        'the read-only PostgreSQL was not met with 503 alone, or not left within 2 s',
      );
  });
}

/**
 * Makes an application, a SCIM token and a user by SCIM. Returns a function for each kind of
 * request, whose parameter is the token of a session.
 */
async function requestsTo({ baseUrl, tokens: [founder], publicKeyLine }) {
  const json = (token) => ({
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
  });
  const post = async (path, headers, body) => {
    const answer = await fetch(`${baseUrl}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const { service } = await registerApplications(baseUrl, founder);
  const description = { description: 'bench' };
  const { token: scim } = await post('/api/v1/org/scim-tokens', json(founder), description);
  const scimHeaders = { ...json(scim), 'content-type': 'application/scim+json' };
  const { id } = await post('/scim/v2/Users', scimHeaders, {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
    userName: 'read-only@bench.example',
  });
  const patch = {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
    Operations: [{ op: 'replace', path: 'title', value: 'Engineer' }],
  };
  const basic = Buffer.from(`${service.id}:${service.secret}`).toString('base64');
  const form = {
    authorization: `Basic ${basic}`,
    'content-type': 'application/x-www-form-urlencoded',
  };
  return {
    certificate: (token) => ({
      path: '/v1/credentials/ssh',
      method: 'POST',
      headers: json(token),
      body: JSON.stringify({ public_key: publicKeyLine }),
    }),
    keys: (token) => ({
      path: '/v1/keys',
      method: 'GET',
      headers: { authorization: `Bearer ${token}` },
    }),
    token: () => ({
      path: '/oauth/token',
      method: 'POST',
      headers: form,
      body: 'grant_type=client_credentials',
    }),
    scim: () => ({
      path: `/scim/v2/Users/${id}`,
      method: 'PATCH',
      headers: scimHeaders,
      body: JSON.stringify(patch),
    }),
  };
}
