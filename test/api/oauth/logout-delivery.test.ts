import { createHmac, generateKeyPairSync, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { SignJWT, type JWTPayload } from 'jose';
import { Client as Database } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LogoutSender } from '../../../src/domain/oauth/logout-notices/logout-sender.service.js';
import {
  listDueClients,
  takeNotices,
} from '../../../src/domain/oauth/logout-notices/notice-queue.repository.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Application } from '../../support/applications.js';
import { runScript } from '../../support/child-script.js';
import { newAddress, type Client } from '../../support/client.js';
import { createTestDatabase } from '../../support/database.js';
import {
  startLogoutReceiver,
  verifyLogoutToken,
  type LogoutReceiver,
} from '../../support/logout-receiver.js';
import { MovableClock } from '../../support/movable-clock.js';
import { idOf } from '../../support/org-api.js';
import type { ReplicaAnswer, ReplicaArgument } from '../../support/replica.js';
import { count, rows } from '../../support/rows.js';
import { SCALE } from '../../support/scale.js';
import { foundOrganization } from '../../support/scim-organization.js';
import {
  jwksOf,
  noticesAbout,
  registerApplication,
  signInTo,
} from '../../support/signed-in-application.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

const SECOND = 1_000;
const HOUR = 3_600_000;

let app: TestApp;
const clock = new MovableClock();
const receivers: LogoutReceiver[] = [];
beforeAll(async () => {
  app = await startTestApp({ clock, environment: { SVC_CLEANUP_INTERVAL: '0' } });
});
afterAll(() => app.close());
afterEach(async () => {
  await rows(app.dataSource, 'DELETE FROM logout_notices');
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()));
});

const wake = () => app.nest.get(LogoutSender, { strict: false }).wake();
/**
 * Lets time pass: moves the clock forward and the times of the notices, which are by the clock of
 * the database, back. Then it wakes the sender.
 */
const advance = async (milliseconds: number) => {
  clock.advance(milliseconds);
  const past = (name: string) => `${name} = ${name} - make_interval(secs => $1)`;
  await rows(
    app.dataSource,
    `UPDATE logout_notices SET ${past('next_attempt_at')}, ${past('give_up_at')}, ${past('created_at')}`,
    [milliseconds / SECOND],
  );
  wake();
};

async function newReceiver(): Promise<LogoutReceiver> {
  const receiver = await startLogoutReceiver();
  receivers.push(receiver);
  return receiver;
}

let people = 0;

/**
 * Creates an admin with an application, which gets its logout notices at a receiver of the test.
 */
async function ground(body: Readonly<Record<string, unknown>> = {}) {
  people += 1;
  const email = `ada@delivery-${people}.example`;
  const { client, key } = await app.enrolled(email);
  const receiver = await newReceiver();
  const application = await registerApplication(client, {
    backchannel_logout_uri: receiver.uri,
    ...body,
  });
  const { claims } = await signInTo(app, client, application);
  return { email, client, key, receiver, application, claims, userId: await idOf(app, email) };
}

const logOut = (browser: Client) => browser.send('POST', '/logout', { address: newAddress() });
const notices = (userId: string) => noticesAbout(app, userId);

/** Queues notices for an application by SQL, each about another random user id. */
async function queue({ clientId }: Application, n: number, selfRegistered = false): Promise<void> {
  await rows(
    app.dataSource,
    `INSERT INTO logout_notices (client_id, self_registered, tenant_id, user_id)
     SELECT c.id, $3, coalesce(c.org_id, c.owner_id), gen_random_uuid()
     FROM oauth_clients c, generate_series(1, $2) WHERE c.id = $1`,
    [clientId, n, selfRegistered],
  );
}

describe('a logout token', () => {
  it.each(['RS256', 'ES256'] as const)(
    'signed by %s is verified by a receiver on jose alone, and names user and session',
    async (algorithm) => {
      const { client, receiver, application, claims, userId } = await ground();
      if (algorithm === 'ES256') {
        await rows(
          app.dataSource,
          `UPDATE oauth_clients SET metadata = metadata || '{"id_token_signed_response_alg": "ES256"}' WHERE id = $1`,
          [application.clientId],
        );
      }
      await logOut(client);
      await expect.poll(() => receiver.received.length).toBe(1);
      const [received] = receiver.received;
      expect(received).toMatchObject({
        method: 'POST',
        contentType: 'application/x-www-form-urlencoded',
      });
      const party = {
        issuer: app.baseUrl,
        clientId: application.clientId,
        algorithm,
        jwks: await jwksOf(app),
      };
      const payload = await verifyLogoutToken(received?.token ?? '', party);
      expect(payload).toEqual({
        iss: app.baseUrl,
        aud: application.clientId,
        sub: userId,
        sid: claims['sid'],
        iat: expect.any(Number),
        exp: Number(payload.iat) + 120,
        jti: expect.any(String),
        events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
      });
      expect(await notices(userId)).toEqual([]);
    },
  );

  it('of another kind is refused by that receiver: twelve forgeries', async () => {
    const jwks = await jwksOf(app);
    const [published] = jwks.keys.filter(({ alg }) => alg === 'RS256');
    const party = { issuer: app.baseUrl, clientId: 'client', algorithm: 'RS256', jwks } as const;
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'own', alg: 'RS256', use: 'sig' };
    const known = { ...party, jwks: { keys: [...jwks.keys, jwk] } };
    const now = Math.floor(Date.now() / 1000);
    const good = {
      iss: app.baseUrl,
      aud: 'client',
      sub: 'somebody',
      iat: now,
      exp: now + 120,
      jti: randomUUID(),
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    };
    const sign = (claims: object, header: object = {}) =>
      new SignJWT(claims as JWTPayload)
        .setProtectedHeader({ alg: 'RS256', kid: 'own', typ: 'logout+jwt', ...header })
        .sign(privateKey);
    const without = (name: keyof typeof good) =>
      Object.fromEntries(Object.entries(good).filter(([one]) => one !== name));
    const seen = new Set<string>();
    // The receiver accepts the good token. So a forged one is refused for its one fault, and not
    // for a fault of the good one.
    await verifyLogoutToken(await sign(good), known, seen);
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const unsigned = `${part({ alg: 'none', typ: 'logout+jwt' })}.${part(good)}.`;
    const head = `${part({ alg: 'HS256', kid: published?.kid, typ: 'logout+jwt' })}.${part(good)}`;
    const secret = JSON.stringify(published);
    const mac = createHmac('sha256', secret).update(head).digest('base64url');
    const forgeries: readonly (readonly [string, string])[] = [
      ['used before', await sign(good)],
      ['of a key that is not published', await sign({ ...good, jti: 'a' }, { kid: 'other' })],
      ['without a signature', unsigned],
      ['with a MAC of the public key', `${head}.${mac}`],
      ['of an ID token', await sign({ ...good, jti: 'b' }, { typ: 'JWT' })],
      ['with a nonce', await sign({ ...good, jti: 'c', nonce: 'n' })],
      ['for another client', await sign({ ...good, jti: 'd', aud: 'other' })],
      ['of another issuer', await sign({ ...good, jti: 'e', iss: 'https://evil.example' })],
      ['that has expired', await sign({ ...good, jti: 'f', iat: now - 300, exp: now - 180 })],
      ['without the event', await sign({ ...good, jti: 'g', events: { other: {} } })],
      ['without user and session', await sign({ ...without('sub'), jti: 'h' })],
      ['without an id', await sign(without('jti'))],
    ];
    expect(forgeries).toHaveLength(12);
    for (const [name, token] of forgeries) {
      const accepted = await verifyLogoutToken(token, known, seen).then(
        () => name,
        () => undefined,
      );
      expect(accepted).toBeUndefined();
    }
  });

  it('is minted again for each try: another id and time, the same user and session', async () => {
    const { client, receiver, userId } = await ground();
    // Without the demand for a pause, a test on a busy machine would meet the next try too late.
    const [first, second] = [503, 502].map((status) => ({
      status,
      headers: { 'retry-after': '90' },
    }));
    receiver.answer = (n) => [first, second][n - 1] ?? 204;
    await logOut(client);
    await expect.poll(async () => (await notices(userId))[0]?.last_result).toBe('answer 503');
    await advance(HOUR);
    await expect.poll(async () => (await notices(userId))[0]?.last_result).toBe('answer 502');
    expect((await notices(userId))[0]?.tries).toBe(2);
    await advance(HOUR);
    await expect.poll(() => notices(userId)).toEqual([]);
    const claims = receiver.received.map(
      ({ token }) =>
        JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as JWTPayload,
    );
    expect(new Set(claims.map(({ jti }) => jti)).size).toBe(3);
    expect(new Set(claims.map(({ sub, sid }) => `${sub} ${String(sid)}`)).size).toBe(1);
    expect(Number(claims[2]?.iat)).toBeGreaterThan(Number(claims[0]?.iat));
  });

  it('leaves an idle queue at the commit, before the next look at the table: the quickest of five', async () => {
    const delays: number[] = [];
    for (let n = 0; n < 5; n += 1) {
      const { client, receiver } = await ground();
      const answered = logOut(client).then(() => performance.now());
      await expect.poll(() => receiver.received.length, { interval: 2 }).toBe(1);
      const arrived = performance.now();
      delays.push(arrived - (await answered));
    }
    // oxlint-disable-next-line no-console -- the delay of an idle queue; the aim is 100 ms
    console.log('an idle queue sends after ms', Math.min(...delays).toFixed());
    expect(Math.min(...delays)).toBeLessThan(900);
  });

  it('still leaves after the connection that listens was lost', async () => {
    const { client, receiver } = await ground();
    const lost = await rows<{ ended: boolean }>(
      app.dataSource,
      `SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
       WHERE datname = current_database() AND query LIKE 'LISTEN %'`,
    );
    expect(lost).toEqual([{ ended: true }]);
    await logOut(client);
    await expect.poll(() => receiver.received.length, { timeout: 90_000 }).toBe(1);
    await expect
      .poll(
        () =>
          count(
            app.dataSource,
            "pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'",
          ),
        { timeout: 90_000 },
      )
      .toBe(1);
  });
});

describe('an application that does not take a notice', () => {
  it('is asked again after Retry-After', async () => {
    const { client, receiver, userId } = await ground();
    receiver.answer = () => ({ status: 503, headers: { 'retry-after': '90' } });
    const before = Date.now();
    await logOut(client);
    await expect.poll(async () => (await notices(userId))[0]?.last_result).toBe('answer 503');
    const [notice] = await notices(userId);
    expect(Number(notice?.next_attempt_at) - before).toBeGreaterThanOrEqual(90 * SECOND);
  });

  it.each<readonly [string, (receiver: LogoutReceiver) => void, string]>([
    [
      'redirects',
      (one) => (one.answer = () => ({ status: 302, headers: { location: one.uri } })),
      'a redirect, which is not followed',
    ],
    [
      'answers more than 64 KiB',
      (one) => (one.answer = () => ({ status: 200, body: 'x'.repeat(70_000) })),
      'an answer of more than 64 KiB',
    ],
  ])('and %s is asked again, and no redirect is followed', async (_, answerBy, result) => {
    const { client, receiver, userId } = await ground();
    answerBy(receiver);
    await logOut(client);
    await expect.poll(async () => (await notices(userId))[0]?.last_result).toBe(result);
    expect(receiver.received).toHaveLength(1);
  });

  it('at an address that became private is sent nothing', async () => {
    const { client, receiver, application, userId } = await ground();
    await rows(
      app.dataSource,
      `UPDATE oauth_clients SET metadata = metadata || '{"backchannel_logout_uri": "http://10.0.0.1/logout"}' WHERE id = $1`,
      [application.clientId],
    );
    await logOut(client);
    await expect
      .poll(async () => (await notices(userId))[0]?.last_result)
      .toBe('a URL that is not allowed');
    expect(receiver.received).toEqual([]);
  });

  it('answers 400 six times, at 1 s, 10 s, 1 min, 10 min and 1 h, and then it is a dead letter', async () => {
    const { client, receiver, userId } = await ground();
    const arrivals: number[] = [];
    receiver.answer = () => {
      arrivals.push(Date.now());
      return 400;
    };
    await logOut(client);
    // The second try comes by itself, before a busy machine has read the time of it.
    await expect.poll(() => arrivals.length).toBe(2);
    const [first = 0, second = 0] = arrivals;
    expect(second - first).toBeGreaterThanOrEqual(SECOND);
    for (const [n, pause] of [10, 60, 600, 3600].entries()) {
      await expect.poll(async () => (await notices(userId))[0]?.refusals).toBe(n + 2);
      const next = Number((await notices(userId))[0]?.next_attempt_at);
      expect(next - Date.now()).toBeLessThanOrEqual(pause * 1.25 * SECOND);
      expect(next - (arrivals.at(-1) ?? 0)).toBeGreaterThanOrEqual(pause * SECOND);
      await advance(pause * 1.25 * SECOND);
    }
    await expect.poll(async () => (await notices(userId))[0]?.dead).toBe(true);
    expect(receiver.received).toHaveLength(6);
    const events = await rows<{ details: object }>(
      app.dataSource,
      "SELECT class, details FROM audit_events WHERE type = 'notice_dead_lettered' AND subject_id = $1",
      [userId],
    );
    expect(events).toMatchObject([{ class: 'oauth', details: { result: 'answer 400' } }]);
    expect(app.log.join('\n')).toContain('An application did not take a logout notice');
  });

  it('for 24 hours has a dead letter, which an admin sees, repeats and drops', async () => {
    const { client, key, receiver, application, userId } = await ground();
    // The receiver asks for 90 seconds without a retry, so that no request is under way while the
    // clock advances.
    receiver.answer = () => ({ status: 500, headers: { 'retry-after': '90' } });
    await logOut(client);
    await expect.poll(async () => (await notices(userId))[0]?.last_result).toBe('answer 500');
    await advance(24 * HOUR);
    await expect.poll(async () => (await notices(userId))[0]?.dead).toBe(true);

    await client.logIn(key, { address: newAddress() });
    const path = `/api/v1/applications/${application.clientId}/logout-notices`;
    const call = (method: string, tail = '') =>
      client.send(method, path + tail, { address: newAddress() });
    const { json, status } = await call('GET');
    expect([status, json]).toEqual([
      200,
      {
        waiting: 0,
        oldest: null,
        sent: 0,
        failed: 1,
        dead_letters: [expect.objectContaining({ sub: userId, result: 'answer 500' })],
      },
    ]);
    const [{ id }] = json.dead_letters as [{ id: string }];
    const page = await client.get(`/admin/applications/${application.clientId}`);
    expect(page.text).toContain(`data-dead-letter="${id}"`);

    const stranger = await ground();
    for (const [method, tail] of [
      ['GET', ''],
      ['POST', `/${id}/repeat`],
      ['DELETE', `/${id}`],
    ] as const) {
      const refused = await stranger.client.send(method, path + tail, { address: newAddress() });
      expect([method, refused.status]).toEqual([method, 404]);
    }
    // The notice of one application is not found below the path of another application.
    const foreign = `/api/v1/applications/${stranger.application.clientId}/logout-notices/${id}`;
    const refused = await stranger.client.send('DELETE', foreign, { address: newAddress() });
    expect(refused.status).toBe(404);

    const sent = receiver.received.length;
    // Another status shows that the result was recorded. Before that, the time must not pass: the
    // pause of 90 seconds would begin only then.
    receiver.answer = () => ({ status: 503, headers: { 'retry-after': '90' } });
    expect((await call('POST', `/${id}/repeat`)).status).toBe(204);
    await expect.poll(async () => (await notices(userId))[0]?.last_result).toBe('answer 503');
    // The tries are counted anew. On a busy machine one of them may get no answer in time.
    expect((await notices(userId))[0]?.tries).toBe(receiver.received.length - sent);
    // the notice is in the queue again, and is no dead letter
    expect((await call('DELETE', `/${id}`)).status).toBe(404);
    await advance(25 * HOUR);
    await expect.poll(async () => (await notices(userId))[0]?.dead).toBe(true);
    await client.logIn(key, { address: newAddress() });
    expect((await call('DELETE', `/${id}`)).status).toBe(204);
    expect(await notices(userId)).toEqual([]);
    expect((await call('DELETE', `/${id}`)).status).toBe(404);
    expect((await call('POST', '/x/repeat')).status).toBe(404);
  });

  it('names a person of another organization by the id alone in the log of its admins', async () => {
    const { application, receiver } = await ground();
    const stranger = await ground();
    receiver.answer = () => 500;
    await rows(
      app.dataSource,
      `INSERT INTO logout_notices (client_id, self_registered, user_id, give_up_at)
       VALUES ($1, false, $2, now() - interval '1 minute')`,
      [application.clientId, stranger.userId],
    );
    await expect.poll(async () => (await notices(stranger.userId))[0]?.dead).toBe(true);
    const events = await rows<object>(
      app.dataSource,
      `SELECT subject_id, subject_email, details ->> 'sub' AS sub FROM audit_events
       WHERE type = 'notice_dead_lettered' AND details ->> 'client_id' = $1`,
      [application.clientId],
    );
    expect(events).toEqual([{ subject_id: null, subject_email: null, sub: stranger.userId }]);
  });

  it('is not shown to a member who registered it and is no admin', async () => {
    const { email } = await ground();
    const { client: bob } = await app.enrolled(email.replace('ada', 'bob'));
    const receiver = await newReceiver();
    const { clientId } = await registerApplication(bob, { backchannel_logout_uri: receiver.uri });
    const answer = await bob.get(`/api/v1/applications/${clientId}/logout-notices`);
    expect([answer.status, answer.json.code]).toEqual([403, 'admin_required']);
  });

  it('delays no other one while it hangs', async () => {
    const hanging = await ground();
    const quick = await ground();
    hanging.receiver.answer = () => 'hang';
    await queue(hanging.application, 40);
    wake();
    await expect.poll(() => hanging.receiver.received.length).toBeGreaterThan(0);
    await queue(quick.application, 40);
    await expect.poll(() => quick.receiver.received.length, { timeout: 4_900 }).toBe(40);
    expect(hanging.receiver.most()).toBe(1);
    expect(hanging.receiver.received).toHaveLength(1);
  });

  it('hangs beside eleven others of its organization, and the first notice of others does not wait for an end', async () => {
    const { application } = await ground();
    const [hanging, quick] = [await newReceiver(), await newReceiver()];
    hanging.answer = () => 'hang';
    const added = await rows<{ id: string }>(
      app.dataSource,
      `INSERT INTO oauth_clients (id, kind, metadata, owner_id, org_id)
       SELECT gen_random_uuid(), 'application', jsonb_build_object('backchannel_logout_uri', uri), c.owner_id, c.org_id
       FROM oauth_clients c, unnest($2::text[]) uri WHERE c.id = $1 RETURNING id`,
      [application.clientId, [...Array<string>(12).fill(hanging.uri), quick.uri, quick.uri]],
    );
    const ids = added.map(({ id }) => id);
    const apps = ids.map((clientId) => ({ clientId, clientSecret: '' }));
    for (const one of apps.slice(0, 12)) await queue(one, 1);
    await expect.poll(() => hanging.received.length).toBeGreaterThanOrEqual(8);
    const startedAt = performance.now();
    for (const one of apps.slice(12)) await queue(one, 1);
    await expect.poll(() => quick.received.length, { timeout: 90_000, interval: 5 }).toBe(2);
    const after = performance.now() - startedAt;
    // oxlint-disable-next-line no-console -- the delay of a first notice
    console.log('beside twelve that hang a first notice is there after ms', after.toFixed());
    // A request that hangs times out after 5 s. The notices did not wait for that.
    expect(after).toBeLessThan(3_500);
    await expect
      .poll(() =>
        count(
          app.dataSource,
          "logout_notices WHERE last_result = 'no answer within a second, while other applications waited'",
        ),
      )
      .toBeGreaterThan(0);
  });

  it('and registered itself takes no turn of an application of an organization', async () => {
    const hanging = await newReceiver();
    hanging.answer = () => 'hang';
    const many = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const id = `self-${randomUUID()}`;
        await rows(
          app.dataSource,
          `INSERT INTO oauth_clients (id, kind, metadata)
           VALUES ($1, 'dynamic', jsonb_build_object('backchannel_logout_uri', $2::text))`,
          [id, hanging.uri],
        );
        return { clientId: id, clientSecret: '' };
      }),
    );
    for (const one of many) await queue(one, 5, true);
    wake();
    await expect.poll(() => hanging.received.length).toBe(3);
    const quick = await ground();
    await queue(quick.application, 30);
    await expect.poll(() => quick.receiver.received.length, { timeout: 4_900 }).toBe(30);
    expect(hanging.most()).toBe(3);
  });

  it('and is removed with notices waiting is sent nothing more', async () => {
    const { client, receiver, application, userId } = await ground();
    receiver.answer = () => 503;
    const { clientId } = application;
    await queue(application, 3);
    await expect.poll(() => receiver.received.length).toBe(3);
    await expect
      .poll(() => count(app.dataSource, "logout_notices WHERE last_result = 'answer 503'"))
      .toBe(3);
    const path = `/api/v1/applications/${clientId}`;
    const removed = await client.send('DELETE', path, { address: newAddress() });
    expect(removed.status).toBe(204);
    expect(await count(app.dataSource, 'logout_notices WHERE client_id = $1', [clientId])).toBe(0);
    // A transaction that began before the removal may still queue a notice. It must not be sent
    // either.
    await rows(
      app.dataSource,
      `INSERT INTO logout_notices (client_id, self_registered, user_id) VALUES ($1, false, $2)`,
      [clientId, userId],
    );
    await expect.poll(() => notices(userId)).toEqual([]);
    await advance(HOUR);
    expect(receiver.received).toHaveLength(3);
  });
});

describe('a removal by SCIM of a person with sign-ins at 50 applications', () => {
  let organizations = 0;

  /**
   * Removes a user who signed in to 50 applications of one receiver, and to one more for each
   * address in `others`. Returns the tokens that the receiver got, and the milliseconds from the
   * response until the last one.
   */
  async function removed(others: readonly string[]) {
    organizations += 1;
    const domain = `fifty-${organizations}.example`;
    const { scim } = await foundOrganization(app, domain);
    const made = await scim('POST', '/Users', { userName: `bob@${domain}` });
    const { id } = made.json as { id: string };
    const taking = await newReceiver();
    const adminId = await idOf(app, `admin@${domain}`);
    const addresses = [...others, ...Array.from({ length: 50 }, () => taking.uri)];
    await rows(
      app.dataSource,
      `WITH made AS (
         INSERT INTO oauth_clients (id, kind, metadata, owner_id, org_id)
         SELECT $4 || n, 'application', jsonb_build_object('backchannel_logout_uri', uri), u.id, u.org_id
         FROM unnest($2::text[]) WITH ORDINALITY a (uri, n), users u WHERE u.id = $3 RETURNING id
       )
       INSERT INTO client_sign_ins (sid, client_id, user_id) SELECT gen_random_uuid(), id, $1 FROM made`,
      [id, addresses, adminId, `fifty-${organizations}-`],
    );
    expect((await scim('DELETE', `/Users/${id}`)).status).toBe(204);
    const answered = performance.now();
    let last = 0;
    await expect
      .poll(
        () => {
          last = performance.now() - answered;
          return taking.received.length;
        },
        { timeout: 90_000, interval: 5 },
      )
      .toBe(100);
    const tokens = taking.received.map(
      ({ token }) =>
        JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as JWTPayload,
    );
    return { id, tokens, last };
  }

  it('tells each session and the person alone, and no later if four others hang, one refuses, one is private and one answers 100 MB', async () => {
    const alone = await removed([]);
    const [hanging, refusing, flooding] = [
      await newReceiver(),
      await newReceiver(),
      await newReceiver(),
    ];
    hanging.answer = () => 'hang';
    refusing.answer = () => 400;
    flooding.answer = () => 'flood';
    const hangs = Array.from({ length: 4 }, () => hanging.uri);
    const bad = [...hangs, refusing.uri, flooding.uri, 'http://10.0.0.1/logout'];
    const beside = await removed(bad);
    // oxlint-disable-next-line no-console -- the delay of the last notice
    console.log('told after ms', alone.last.toFixed(), 'beside others', beside.last.toFixed());
    // A request that hangs times out after 5 s: no other notice waited for that. The bound is
    // relative, because a busy machine needs seconds for the notices alone.
    expect(beside.last).toBeLessThan(alone.last + 4_900);
    for (const { id, tokens } of [alone, beside]) {
      expect(new Set(tokens.map(({ aud, sid }) => `${String(aud)} ${String(sid)}`)).size).toBe(100);
      expect(tokens.filter(({ sid }) => sid === undefined)).toHaveLength(50);
      expect(new Set(tokens.map(({ sub }) => sub))).toEqual(new Set([id]));
    }
    const results = await rows<{ last_result: string }>(
      app.dataSource,
      'SELECT DISTINCT last_result FROM logout_notices WHERE last_result IS NOT NULL ORDER BY 1',
    );
    expect(results.map((row) => row.last_result)).toEqual(
      expect.arrayContaining([
        'a URL that is not allowed',
        'an answer of more than 64 KiB',
        'answer 400',
      ]),
    );
    expect(hanging.most()).toBeLessThanOrEqual(4);
  });
});

describe('two senders', () => {
  it('of 20 that ask at once, one takes a notice, and the others none', async () => {
    const { application, receiver } = await ground();
    receiver.answer = () => 'hang';
    const { manager } = app.dataSource;
    // The service already has a request to this client that hangs, so that its own sender takes no
    // further notice.
    await queue(application, 1);
    wake();
    await expect.poll(() => receiver.received.length).toBe(1);
    await queue(application, 1);
    expect(await listDueClients(manager, false)).toMatchObject([
      { clientId: application.clientId },
    ]);
    const counts = new Map([[application.clientId, 4]]);
    const taken = await Promise.all(
      Array.from({ length: 20 }, () => takeNotices(manager, counts, false)),
    );
    expect(taken.flat()).toHaveLength(1);
    expect(await listDueClients(manager, false)).toEqual([]);
  });

  it('of which one was killed with a notice: the other one sends it within 30 s', async () => {
    const database = await createTestDatabase();
    const observer = new Database({ connectionString: database.url });
    await observer.connect();
    const receiver = await newReceiver();
    receiver.answer = (n) => (n === 1 ? 'hang' : 200);
    const folder = await makeTemporaryDirectory();
    const environment = { SVC_SSH_CA_KEY_PATH: join(folder, 'ssh_ca_key') };
    const argument: ReplicaArgument = { database: { url: database.url }, environment };
    const first = runScript<ReplicaAnswer>('replica.ts', argument);
    await first.answer;
    await observer.query(
      `INSERT INTO oauth_clients (id, kind, metadata)
       VALUES ('told', 'first-party', jsonb_build_object('backchannel_logout_uri', $1::text))`,
      [receiver.uri],
    );
    await observer.query(
      `INSERT INTO logout_notices (client_id, self_registered, user_id) VALUES ('told', false, gen_random_uuid())`,
    );
    await expect.poll(() => receiver.received.length, { timeout: 90_000 }).toBe(1);
    await first.kill();
    const killedAt = performance.now();
    if (SCALE === 'small') {
      // Ends the lease of the killed process. At full scale the test waits until the lease expires.
      const ended = await observer.query(
        `UPDATE logout_notices SET next_attempt_at = now()
         WHERE next_attempt_at BETWEEN now() AND now() + interval '25 s'`,
      );
      expect(ended.rowCount).toBe(1);
    }
    const second = runScript<ReplicaAnswer>('replica.ts', argument);
    await second.answer;
    await expect.poll(() => receiver.received.length, { timeout: 90_000 }).toBe(2);
    expect(performance.now() - killedAt).toBeLessThan(30_000);
    await expect
      .poll(async () => (await observer.query('SELECT FROM logout_notices')).rowCount)
      .toBe(0);
    await second.finish();
    await observer.end();
    await database.drop();
    await removeDirectory(folder);
  });
});
