import { createHmac, generateKeyPairSync, randomUUID } from 'node:crypto';
import { SignJWT, type JWTPayload } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  listDueReceivers,
  takeSignals,
} from '../../../src/domain/oauth/shared-signals/event-queue.repository.js';
import { SignalSender } from '../../../src/domain/oauth/shared-signals/signal-sender.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { idOf } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';
import { jwksOf, signInTo } from '../../support/signed-in-application.js';
import {
  eventOf,
  startSignalReceiver,
  verifySignal,
  type SignalReceiver,
} from '../../support/signal-receiver.js';
import { createStream, newProgram, signalsApi, signalsOf } from '../../support/signal-streams.js';

const SECOND = 1_000;
const HOUR = 3_600_000;

let app: TestApp;
const receivers: SignalReceiver[] = [];
beforeAll(async () => {
  app = await startTestApp({ environment: { SVC_CLEANUP_INTERVAL: '0' } });
});
afterAll(() => app.close());
afterEach(async () => {
  await rows(app.dataSource, 'DELETE FROM signal_streams');
  await rows(app.dataSource, 'DELETE FROM signal_events');
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()));
});

const wake = () => app.nest.get(SignalSender, { strict: false }).wake();
/** Lets time pass for the queue by moving its times back, and then wakes the sender. */
const advance = async (milliseconds: number) => {
  await rows(
    app.dataSource,
    `UPDATE signal_events SET next_attempt_at = next_attempt_at - make_interval(secs => $1),
                              give_up_at = give_up_at - make_interval(secs => $1)`,
    [milliseconds / 1000],
  );
  wake();
};

let people = 0;

/**
 * Creates an admin who is signed in to an application. A stream pushes the signals of the
 * application to a receiver.
 */
async function ground(more: Readonly<Record<string, unknown>> = {}) {
  people += 1;
  const email = `ada@pushed-${people}.example`;
  const { client, key } = await app.enrolled(email);
  const receiver = await startSignalReceiver();
  receivers.push(receiver);
  const program = await newProgram(app, client);
  const streamId = await createStream(program, receiver.uri, more);
  await signInTo(app, client, program.application);
  return { email, client, key, receiver, program, streamId, userId: await idOf(app, email) };
}

const logOut = (browser: Client) => browser.send('POST', '/logout', { address: newAddress() });

/**
 * Queues `n` events for a stream by SQL: all about `subject`, or else each about another random
 * user id.
 */
async function queue(streamId: string, n: number, subject: string | null = null): Promise<void> {
  await rows(
    app.dataSource,
    `INSERT INTO signal_events (stream_id, subject_id, type, body)
     SELECT $1, coalesce($3, gen_random_uuid()), 'session-revoked',
            jsonb_build_object('initiating_entity', 'system', 'reason_admin', jsonb_build_object('en', 'Number ' || n))
     FROM generate_series(1, $2) n`,
    [streamId, n, subject],
  );
}

/** Returns the numbers of the received events about a user, in the order of their arrival. */
const numbersOf = (receiver: SignalReceiver, subject: string) =>
  receiver.received
    .filter(({ claims }) => (claims['sub_id'] as { sub?: string }).sub === subject)
    .map(({ claims }) => {
      const [event] = Object.values(claims['events'] as object) as {
        reason_admin: { en: string };
      }[];
      return Number(event?.reason_admin.en.split(' ')[1]);
    });

describe('a security event token', () => {
  it('is verified by a receiver on jose alone, and names the person', async () => {
    const { client, receiver, program, streamId, userId } = await ground();
    await logOut(client);
    await expect.poll(() => receiver.received.length).toBe(1);
    const [received] = receiver.received;
    expect(received?.headers).toEqual({
      'content-type': 'application/secevent+jwt',
      accept: 'application/json',
      authorization: undefined,
    });
    const { clientId } = program.application;
    const party = { issuer: app.baseUrl, clientId, streamId, jwks: await jwksOf(app) };
    const { payload } = await verifySignal(received?.token ?? '', party);
    expect(payload).toEqual({
      iss: app.baseUrl,
      aud: clientId,
      iat: expect.any(Number),
      jti: expect.any(String),
      txn: expect.any(String),
      sub_id: { format: 'iss_sub', iss: app.baseUrl, sub: userId },
      events: {
        'https://schemas.openid.net/secevent/caep/event-type/session-revoked': {
          event_timestamp: payload.iat,
          initiating_entity: 'user',
          reason_admin: { en: 'The person ended the session.' },
        },
      },
    });
    await expect.poll(() => signalsOf(app, streamId)).toEqual([]);
  });

  it('of a verification has its own members alone, and the stream as its subject', async () => {
    const { receiver, program, streamId } = await ground();
    await program.send('POST', '/ssf/verify', { stream_id: streamId, state: 'xyz' });
    await expect.poll(() => receiver.received.length).toBe(1);
    const { clientId } = program.application;
    const party = { issuer: app.baseUrl, clientId, streamId, jwks: await jwksOf(app) };
    const verified = await verifySignal(receiver.received[0]?.token ?? '', party);
    expect(verified).toMatchObject({
      type: 'verification',
      event: { state: 'xyz' },
      subject: { format: 'opaque', id: streamId },
    });
    expect(Object.keys(verified.event)).toEqual(['state']);
  });

  it('of another kind is refused by that receiver: twelve forgeries, and five more', async () => {
    const jwks = await jwksOf(app);
    const [published] = jwks.keys.filter(({ alg }) => alg === 'RS256');
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const own = { ...publicKey.export({ format: 'jwk' }), kid: 'own', alg: 'RS256', use: 'sig' };
    const elliptic = { ...ec.publicKey.export({ format: 'jwk' }), kid: 'ec', alg: 'ES256' };
    const streamId = randomUUID();
    const party = { issuer: app.baseUrl, clientId: 'client', streamId };
    const known = { ...party, jwks: { keys: [...jwks.keys, own, elliptic] } };
    const now = Math.floor(Date.now() / 1000);
    const uri = 'https://schemas.openid.net/secevent/caep/event-type/session-revoked';
    const event = {
      event_timestamp: now,
      initiating_entity: 'admin',
      reason_admin: { en: 'A test.' },
    };
    const good = {
      iss: app.baseUrl,
      aud: 'client',
      iat: now,
      jti: randomUUID(),
      txn: randomUUID(),
      sub_id: { format: 'iss_sub', iss: app.baseUrl, sub: randomUUID() },
      events: { [uri]: event },
    };
    const sign = (claims: object, header: object = {}) =>
      new SignJWT(claims as JWTPayload)
        .setProtectedHeader({ alg: 'RS256', kid: 'own', typ: 'secevent+jwt', ...header })
        .sign('alg' in header ? ec.privateKey : privateKey);
    const but = (claims: object) => ({ ...good, jti: randomUUID(), ...claims });
    const without = (name: keyof typeof good) =>
      Object.fromEntries(Object.entries(but({})).filter(([one]) => one !== name));
    const seen = new Set<string>();
    await verifySignal(await sign(good), known, seen);
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const unsigned = `${part({ alg: 'none', typ: 'secevent+jwt' })}.${part(but({}))}.`;
    const head = `${part({ alg: 'HS256', kid: published?.kid, typ: 'secevent+jwt' })}.${part(but({}))}`;
    const mac = createHmac('sha256', JSON.stringify(published)).update(head).digest('base64url');
    const forgeries: readonly (readonly [string, string])[] = [
      ['used before', await sign(good)],
      ['of a key that is not published', await sign(but({}), { kid: 'other' })],
      ['without a signature', unsigned],
      ['with a MAC of the public key', `${head}.${mac}`],
      ['signed by ES256', await sign(but({}), { alg: 'ES256', kid: 'ec' })],
      ['of an ID token', await sign(but({}), { typ: 'JWT' })],
      ['of a logout token', await sign(but({}), { typ: 'logout+jwt' })],
      ['for another client', await sign(but({ aud: 'other' }))],
      ['of another issuer', await sign(but({ iss: 'https://evil.example' }))],
      ['with a sub', await sign(but({ sub: 'a person' }))],
      ['with an exp', await sign(but({ exp: now + 60 }))],
      ['with two events', await sign(but({ events: { [uri]: event, 'urn:other': {} } }))],
      ['of an unknown event', await sign(but({ events: { 'urn:other': event } }))],
      ['without a reason', await sign(but({ events: { [uri]: { ...event, reason_admin: {} } } }))],
      ['about a stream', await sign(but({ sub_id: { format: 'opaque', id: streamId } }))],
      ['without a subject', await sign(without('sub_id'))],
      ['without an id', await sign(without('jti'))],
    ];
    for (const [name, token] of forgeries) {
      const accepted = await verifySignal(token, known, seen).then(
        () => name,
        () => undefined,
      );
      expect(accepted).toBeUndefined();
    }
  });

  it('is the same at each try, with its id and its claims', async () => {
    const { client, receiver, streamId } = await ground();
    // Without the demand for a pause, a test on a busy machine would meet the next try too late.
    const [first, second] = [503, 502].map((status) => ({
      status,
      headers: { 'retry-after': '90' },
    }));
    receiver.answer = (n) => [first, second][n - 1] ?? 202;
    await logOut(client);
    await expect
      .poll(async () => (await signalsOf(app, streamId))[0]?.last_result)
      .toBe('answer 503');
    await advance(HOUR);
    await expect
      .poll(async () => (await signalsOf(app, streamId))[0]?.last_result)
      .toBe('answer 502');
    expect((await signalsOf(app, streamId))[0]?.tries).toBe(2);
    await advance(HOUR);
    await expect.poll(() => signalsOf(app, streamId)).toEqual([]);
    expect(new Set(receiver.received.map(({ token }) => token)).size).toBe(1);
  });

  it('carries the Authorization header that the receiver asked for, which no answer or log shows', async () => {
    const { client, receiver, program, streamId } = await ground();
    const secret = `Bearer ${randomUUID()}`;
    const changed = await program.send('PATCH', '/ssf/stream', {
      stream_id: streamId,
      delivery: {
        method: 'urn:ietf:rfc:8935',
        endpoint_url: receiver.uri,
        authorization_header: secret,
      },
    });
    expect(changed.text).not.toContain(secret);
    await logOut(client);
    await expect.poll(() => receiver.received[0]?.headers['authorization']).toBe(secret);
    expect(app.log.join('\n')).not.toContain(secret);
  });

  it('has its host alone in the audit log: a path may be a secret, and receivers read the log', async () => {
    const { receiver, program } = await ground();
    const { host, pathname } = new URL(receiver.uri);
    const written = await rows<{ details: object }>(
      app.dataSource,
      "SELECT details FROM audit_events WHERE type = 'oauth_client_updated' AND details ->> 'client_id' = $1",
      [program.application.clientId],
    );
    const ofStream = written.filter(({ details }) => 'host' in details);
    expect(ofStream).toMatchObject([{ details: { method: 'push', host } }]);
    expect(pathname.length).toBeGreaterThan(1);
    expect(JSON.stringify(written)).not.toContain(pathname);
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
    console.log('an idle queue pushes after ms', Math.min(...delays).toFixed());
    expect(Math.min(...delays)).toBeLessThan(900);
  });
});

describe('a receiver', () => {
  it('hears of each person in order, also if it refuses and hangs in between', async () => {
    const { receiver, streamId } = await ground();
    const [one, two] = [randomUUID(), randomUUID()];
    receiver.answer = (_, { claims }) => {
      const { sub } = claims['sub_id'] as { sub: string };
      return sub === one && numbersOf(receiver, one).length === 1 ? 503 : 202;
    };
    await queue(streamId, 3, one);
    await queue(streamId, 3, two);
    await expect.poll(() => numbersOf(receiver, two)).toEqual([1, 2, 3]);
    // The first event about `one` failed. Only the later events about `one` wait for its retry.
    expect(numbersOf(receiver, one)).toEqual([1]);
    await expect
      .poll(async () => (await signalsOf(app, streamId, one))[0]?.last_result)
      .toBe('answer 503');
    await advance(2 * SECOND);
    await expect.poll(() => numbersOf(receiver, one)).toEqual([1, 1, 2, 3]);
    await expect.poll(() => signalsOf(app, streamId)).toEqual([]);
  });

  it('that answers 400 six times has a dead letter, and the next event of the person goes out', async () => {
    const { receiver, program, streamId } = await ground();
    const person = randomUUID();
    receiver.answer = (_, { claims }) =>
      JSON.stringify(claims).includes('Number 1')
        ? { status: 400, body: '{"err":"invalid_request"}' }
        : 202;
    await queue(streamId, 2, person);
    // The first pause takes one second of real time. A busy machine could not advance the queue
    // within it, so the test lets it pass.
    await expect.poll(() => receiver.received.length).toBe(2);
    for (const pause of [10, 60, 600, 3600]) {
      const before = receiver.received.length;
      await expect
        .poll(async () => (await signalsOf(app, streamId, person))[0]?.last_result)
        .toBe('answer 400');
      await expect
        .poll(() => count(app.dataSource, 'signal_events WHERE next_attempt_at > now()'))
        .toBe(2);
      await advance(pause * 1.25 * SECOND + SECOND);
      await expect.poll(() => receiver.received.length).toBeGreaterThan(before);
    }
    await expect.poll(() => numbersOf(receiver, person)).toEqual([1, 1, 1, 1, 1, 1, 2]);
    expect(await signalsOf(app, streamId)).toMatchObject([
      { dead: true, last_result: 'answer 400' },
    ]);
    const events = await rows<{ details: object }>(
      app.dataSource,
      "SELECT details FROM audit_events WHERE type = 'notice_dead_lettered' AND details ->> 'client_id' = $1",
      [program.application.clientId],
    );
    expect(events).toMatchObject([
      { details: { notice: 'session-revoked', sub: person, result: 'answer 400' } },
    ]);
    expect(app.log.join('\n')).toContain('An application did not take a signal');
  });

  it('away for 24 hours leaves a dead letter, which an admin sees, repeats and drops', async () => {
    const { client, key, receiver, program, streamId } = await ground();
    // As for logout notices: no request must be under way while the clock advances.
    receiver.answer = () => ({ status: 500, headers: { 'retry-after': '90' } });
    await logOut(client);
    await expect
      .poll(async () => (await signalsOf(app, streamId))[0]?.last_result)
      .toBe('answer 500');
    await advance(24 * HOUR);
    await expect.poll(async () => (await signalsOf(app, streamId))[0]?.dead).toBe(true);
    await client.logIn(key, { address: newAddress() });
    const { application } = program;
    const shown = await signalsApi(client, 'GET', application);
    expect(shown.json).toMatchObject({
      waiting: 0,
      stream: { stream_id: streamId, method: 'push', status: 'enabled' },
      dead_letters: [{ event: 'session-revoked', result: 'answer 500' }],
    });
    const [{ id }] = shown.json.dead_letters as [{ id: string }];
    const page = await client.get(`/admin/applications/${application.clientId}`);
    expect(page.text).toContain(`data-dead-signal="${id}"`);
    const stranger = await ground();
    for (const [method, path] of [
      ['POST', `/${id}/repeat`],
      ['DELETE', `/${id}`],
    ] as const) {
      const foreign = await signalsApi(stranger.client, method, application, undefined, path);
      const own = await signalsApi(
        stranger.client,
        method,
        stranger.program.application,
        undefined,
        path,
      );
      expect([foreign.status, own.status]).toEqual([404, 404]);
    }
    receiver.answer = () => 202;
    const sent = receiver.received.length;
    expect((await signalsApi(client, 'POST', application, undefined, `/${id}/repeat`)).status).toBe(
      204,
    );
    await expect.poll(() => receiver.received.length).toBe(sent + 1);
    await expect.poll(() => signalsOf(app, streamId)).toEqual([]);
    await rows(
      app.dataSource,
      "INSERT INTO signal_events (stream_id, subject_id, type, dead_at) VALUES ($1, $1, 'verification', now())",
      [streamId],
    );
    const [letter] = await signalsOf(app, streamId);
    expect(
      (await signalsApi(client, 'DELETE', application, undefined, `/${letter?.id}`)).status,
    ).toBe(204);
    expect(await signalsOf(app, streamId)).toEqual([]);
  });

  it.each<readonly [string, string, (receiver: SignalReceiver) => void]>([
    [
      'redirects',
      'a redirect, which is not followed',
      (one) => (one.answer = () => ({ status: 307, headers: { location: one.uri } })),
    ],
    [
      'answers more than 64 KiB',
      'an answer of more than 64 KiB',
      (one) => (one.answer = () => ({ status: 202, body: 'x'.repeat(70_000) })),
    ],
  ])('that %s is asked again, and no redirect is followed', async (_, words, answerBy) => {
    const { client, receiver, streamId } = await ground();
    answerBy(receiver);
    await logOut(client);
    await expect.poll(async () => (await signalsOf(app, streamId))[0]?.last_result).toBe(words);
    expect(receiver.received).toHaveLength(1);
  });

  it('at an address that became private is sent nothing', async () => {
    const { client, receiver, streamId } = await ground();
    await rows(
      app.dataSource,
      "UPDATE signal_streams SET endpoint_url = 'http://10.0.0.1/' WHERE id = $1",
      [streamId],
    );
    await logOut(client);
    await expect
      .poll(async () => (await signalsOf(app, streamId))[0]?.last_result)
      .toBe('a URL that is not allowed');
    expect(receiver.received).toEqual([]);
  });

  it('that hangs delays no other one', async () => {
    const hanging = await ground();
    const quick = await ground();
    hanging.receiver.answer = () => 'hang';
    await queue(hanging.streamId, 40);
    wake();
    await expect.poll(() => hanging.receiver.received.length).toBeGreaterThan(0);
    await queue(quick.streamId, 40);
    await expect.poll(() => quick.receiver.received.length).toBe(40);
    // Each request that hangs takes 5 s. If the quick events waited for them, all 40 would have
    // been sent by now; a busy machine sends only some meanwhile.
    expect(hanging.receiver.received.length).toBeLessThan(20);
    expect(hanging.receiver.most()).toBe(1);
  });
});

describe('twelve receivers of an organization that hang', () => {
  it('do not hold up the first event of another one until their requests end', async () => {
    const { client, receiver: quick, program } = await ground();
    const hanging = await startSignalReceiver();
    receivers.push(hanging);
    hanging.answer = () => 'hang';
    const added = await rows<{ id: string }>(
      app.dataSource,
      `WITH clients AS (
         INSERT INTO oauth_clients (id, kind, metadata, owner_id, org_id)
         SELECT gen_random_uuid(), 'application', '{}', c.owner_id, c.org_id
         FROM oauth_clients c, generate_series(1, 12) WHERE c.id = $1 RETURNING id, org_id
       ), allowed AS (
         INSERT INTO signal_receivers (client_id, subject_format) SELECT id, 'iss_sub' FROM clients
       )
       SELECT id FROM clients`,
      [program.application.clientId],
    );
    await rows(
      app.dataSource,
      `INSERT INTO signal_streams (id, client_id, org_id, method, endpoint_url, events)
       SELECT gen_random_uuid(), c.id, c.org_id, 'push', $2, '{}' FROM oauth_clients c WHERE c.id = ANY ($1)`,
      [added.map(({ id }) => id), hanging.uri],
    );
    await rows(
      app.dataSource,
      `INSERT INTO signal_events (stream_id, subject_id, type)
       SELECT id, id, 'verification' FROM signal_streams WHERE endpoint_url = $1`,
      [hanging.uri],
    );
    await expect.poll(() => hanging.received.length).toBeGreaterThanOrEqual(8);
    const startedAt = performance.now();
    await logOut(client);
    await expect.poll(() => quick.received.length, { timeout: 90_000, interval: 5 }).toBe(1);
    const after = performance.now() - startedAt;
    // oxlint-disable-next-line no-console -- the delay of a first event
    console.log('beside twelve that hang a first event is there after ms', after.toFixed());
    // A request that hangs times out after 5 s. The events did not wait for that.
    expect(after).toBeLessThan(3_500);
  });
});

describe('a stream', () => {
  it('that is paused sends nothing, and after it is enabled everything in order', async () => {
    const { receiver, program, streamId } = await ground();
    const status = (to: string) =>
      program.send('POST', '/ssf/status', { stream_id: streamId, status: to });
    await status('paused');
    const person = randomUUID();
    await queue(streamId, 3, person);
    const other = await ground();
    await queue(other.streamId, 1);
    await expect.poll(() => other.receiver.received.length).toBe(1);
    expect(receiver.received).toEqual([]);
    await status('enabled');
    await expect.poll(() => numbersOf(receiver, person)).toEqual([1, 2, 3]);
  });

  it.each([
    ['paused', '/ssf/status', { status: 'paused' }, () => ({ status: 'enabled' })],
    [
      'polled',
      '/ssf/stream',
      { delivery: { method: 'urn:ietf:rfc:8936' } },
      (uri: string) => ({ delivery: { method: 'urn:ietf:rfc:8935', endpoint_url: uri } }),
    ],
  ])(
    'that was %s for a day tries again for a day what it had tried before',
    async (_, path, away, back) => {
      const { receiver, program, streamId } = await ground();
      receiver.answer = () => 500;
      await queue(streamId, 1);
      const tried = async () => (await signalsOf(app, streamId))[0]?.last_result;
      await expect.poll(tried).toBe('answer 500');
      const change = async (to: object) => {
        const method = path === '/ssf/status' ? 'POST' : 'PATCH';
        const answer = await program.send(method, path, { stream_id: streamId, ...to });
        expect(answer.status).toBe(200);
      };
      await change(away);
      await advance(25 * HOUR);
      const before = receiver.received.length;
      await change(back(receiver.uri));
      wake();
      await expect.poll(() => receiver.received.length).toBe(before + 1);
      await expect
        .poll(() => count(app.dataSource, 'signal_events WHERE next_attempt_at > now()'))
        .toBe(1);
      expect(await signalsOf(app, streamId)).toMatchObject([{ dead: false }]);
      receiver.answer = () => 202;
      await advance(HOUR);
      await expect.poll(() => signalsOf(app, streamId)).toEqual([]);
    },
  );

  it('of an application whose owner is deactivated sends nothing, and afterwards everything', async () => {
    const { receiver, program, streamId, userId } = await ground();
    const setActive = (isActive: boolean) =>
      rows(app.dataSource, 'UPDATE users SET active = $2 WHERE id = $1', [userId, isActive]);
    await setActive(false);
    const person = randomUUID();
    await queue(streamId, 3, person);
    const { manager } = app.dataSource;
    expect(await listDueReceivers(manager)).toEqual([]);
    expect(await takeSignals(manager, new Map([[program.application.clientId, 3]]))).toEqual([]);
    const other = await ground();
    await queue(other.streamId, 1);
    await expect.poll(() => other.receiver.received.length).toBe(1);
    expect(receiver.received).toEqual([]);
    await setActive(true);
    await queue(streamId, 1);
    await expect.poll(() => numbersOf(receiver, person)).toEqual([1, 2, 3]);
  });

  it('that is paused for 7 days drops what it kept, and says so once', async () => {
    const { receiver, program, streamId } = await ground();
    const status = (to: string) =>
      program.send('POST', '/ssf/status', { stream_id: streamId, status: to });
    await status('paused');
    await queue(streamId, 2500);
    await rows(
      app.dataSource,
      "UPDATE signal_events SET created_at = created_at - interval '7 days 1 minute'",
    );
    await queue(streamId, 1, streamId);
    const sender = app.nest.get(SignalSender, { strict: false });
    const dropped = await Promise.all([sender.dropStale(), sender.dropStale()]);
    expect(dropped.reduce((a, b) => a + b)).toBe(2500);
    expect(await sender.dropStale()).toBe(0);
    const left = await signalsOf(app, streamId);
    expect(new Set(left.map(({ type }) => type))).toEqual(
      new Set(['session-revoked', 'stream-updated']),
    );
    expect(left.length).toBeLessThanOrEqual(3);
    await status('enabled');
    await expect
      .poll(() => receiver.received.map(({ claims }) => eventOf(claims)))
      .toContain('stream-updated');
    const told = receiver.received.find(({ claims }) => eventOf(claims) === 'stream-updated');
    expect(Object.values(told?.claims['events'] as object)[0]).toEqual({
      status: 'paused',
      reason: 'Events that had waited for 7 days were dropped.',
    });
  });

  const ENDS = ['deleted', 'withdrawn', 'removed with its application'] as const;
  /** Ends a stream in one of these ways. Then queues an event for it. */
  async function endStream(
    end: (typeof ENDS)[number],
    { client, program, streamId }: Awaited<ReturnType<typeof ground>>,
  ) {
    const { clientId } = program.application;
    if (end === 'deleted') await program.send('DELETE', `/ssf/stream?stream_id=${streamId}`);
    else if (end === 'withdrawn') await signalsApi(client, 'DELETE', program.application);
    else await client.send('DELETE', `/api/v1/applications/${clientId}`, { address: newAddress() });
    expect(await count(app.dataSource, 'signal_streams WHERE id = $1', [streamId])).toBe(0);
    // A transaction that began before the end may still queue an event. It must not be sent.
    await queue(streamId, 1);
  }
  async function passHour() {
    const other = await ground();
    await advance(HOUR);
    await queue(other.streamId, 1);
    await expect.poll(() => other.receiver.received.length).toBe(1);
  }

  it.each(ENDS)('that is %s with events waiting sends nothing more', async (end) => {
    const one = await ground();
    one.receiver.answer = () => 503;
    await queue(one.streamId, 3);
    await expect
      .poll(() => count(app.dataSource, "signal_events WHERE last_result = 'answer 503'"))
      .toBe(3);
    await endStream(end, one);
    await passHour();
    expect(one.receiver.received).toHaveLength(3);
  });

  it.each(ENDS)('that is %s with a push under way sends nothing after it', async (end) => {
    const one = await ground();
    const { promise, resolve } = Promise.withResolvers<number>();
    one.receiver.answer = () => promise;
    await queue(one.streamId, 2, randomUUID());
    await expect.poll(() => one.receiver.received.length).toBe(1);
    await endStream(end, one);
    resolve(503);
    await expect
      .poll(() => count(app.dataSource, "signal_events WHERE last_result = 'answer 503'"))
      .toBe(1);
    await passHour();
    expect(one.receiver.received).toHaveLength(1);
  });
});

describe('two senders', () => {
  it('of 20 that ask at once, one takes an event, and none the next one of the person', async () => {
    const { receiver, program, streamId } = await ground();
    receiver.answer = () => 'hang';
    const { manager } = app.dataSource;
    const person = randomUUID();
    // While the stream is paused, the sender of the application does not take its events.
    await rows(app.dataSource, "UPDATE signal_streams SET status = 'paused' WHERE id = $1", [
      streamId,
    ]);
    await queue(streamId, 2, person);
    const { clientId } = program.application;
    const counts = new Map([[clientId, 4]]);
    const taken = await app.dataSource.transaction(async (tx) => {
      await tx.query("UPDATE signal_streams SET status = 'enabled' WHERE id = $1", [streamId]);
      expect(await listDueReceivers(tx)).toMatchObject([{ clientId }]);
      const won = await takeSignals(tx, counts);
      expect(await listDueReceivers(tx)).toEqual([]);
      return won;
    });
    const first = (await signalsOf(app, streamId, person))[0]?.id;
    expect(taken.map(({ id }) => id)).toEqual([first]);
    await rows(
      app.dataSource,
      "UPDATE signal_events SET next_attempt_at = '-infinity' WHERE stream_id = $1",
      [streamId],
    );
    const raced = await Promise.all(Array.from({ length: 20 }, () => takeSignals(manager, counts)));
    // The sender of the application may win against all 20, so that at most one of them gets the
    // event.
    const leases = await rows<{ lease: number }>(
      app.dataSource,
      'SELECT lease FROM signal_events WHERE stream_id = $1 ORDER BY id',
      [streamId],
    );
    expect(raced.flat().length).toBeLessThanOrEqual(1);
    expect(leases).toEqual([{ lease: 2 }, { lease: 0 }]);
  });
});
