import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { endGrantSoon } from '../../../src/domain/oauth/grants/grants.repository.js';
import { LogoutSender } from '../../../src/domain/oauth/logout-notices/logout-sender.service.js';
import { NoticeWatch } from '../../../src/domain/oauth/notice-watch/notice-watch.service.js';
import { CleanUp } from '../../../src/domain/admin/clean-up/clean-up.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { startLogoutReceiver, type LogoutReceiver } from '../../support/logout-receiver.js';
import { MovableClock } from '../../support/movable-clock.js';
import { OauthRows } from '../../support/oauth-rows.js';
import { idOf } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';
import {
  noticesAbout,
  registerApplication,
  signInTo,
} from '../../support/signed-in-application.js';

const HOUR = 3_600_000;

let app: TestApp;
const clock = new MovableClock();
const receivers: LogoutReceiver[] = [];
beforeAll(async () => {
  // The heartbeats are rare, because each would confirm the server that a test makes unconfirmed.
  app = await startTestApp({
    clock,
    environment: { SVC_CLEANUP_INTERVAL: '0' },
    failoverLimits: { heartbeat: 60_000 },
  });
});
afterAll(() => app.close());
afterEach(async () => {
  await rows(app.dataSource, 'DELETE FROM logout_notices');
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()));
});

const wake = () => app.nest.get(LogoutSender, { strict: false }).wake();
const notices = (userId: string) => noticesAbout(app, userId);
const securityLines = () => app.log.filter((line) => line.includes('"context":"security"'));

let people = 0;

/**
 * Creates a receiver of logout notices, and an admin who is signed in to an application that has
 * it.
 */
async function ground(body: Readonly<Record<string, unknown>> = {}) {
  people += 1;
  const email = `ada@rules-${people}.example`;
  const { client } = await app.enrolled(email);
  const receiver = await startLogoutReceiver();
  receivers.push(receiver);
  const application = await registerApplication(client, {
    backchannel_logout_uri: receiver.uri,
    ...body,
  });
  const { claims } = await signInTo(app, client, application);
  const userId = await idOf(app, email);
  return { client, receiver, application, userId, sid: String(claims['sid']), email };
}

/**
 * Queues a notice about an end that was `minutesAgo`. Without `sid` it is about all sessions of the
 * user.
 */
async function queue(
  clientId: string,
  about: { userId?: string; sid?: string; minutesAgo?: number } = {},
): Promise<void> {
  const { userId = randomUUID(), sid = null, minutesAgo = 0 } = about;
  await rows(
    app.dataSource,
    `INSERT INTO logout_notices (client_id, self_registered, tenant_id, user_id, sid, created_at)
     SELECT c.id, false, coalesce(c.org_id, c.owner_id), $2, $3, now() - make_interval(mins => $4)
     FROM oauth_clients c WHERE c.id = $1`,
    [clientId, userId, sid, minutesAgo],
  );
}

// This test must run before others move the clock, because it needs a touch that is recent by the
// clock.
describe('the owner of an application without an organization', () => {
  it('sees, repeats and drops its dead letters, and no other person does', async () => {
    const ownerless = new OauthRows(app.dataSource);
    const browserOf = async () => {
      const person = await ownerless.user({ organization: false });
      const browser = app.client();
      browser.setCookie('svc_session', (await ownerless.session(person)).token);
      return browser;
    };
    const [owner, stranger] = [await browserOf(), await browserOf()];
    const receiver = await startLogoutReceiver();
    receivers.push(receiver);
    const { clientId } = await registerApplication(owner, { backchannel_logout_uri: receiver.uri });
    const bury = async () => {
      await rows(
        app.dataSource,
        `INSERT INTO logout_notices (client_id, self_registered, user_id, dead_at)
         VALUES ($1, false, gen_random_uuid(), now())`,
        [clientId],
      );
    };
    await bury();
    await bury();
    const path = `/api/v1/applications/${clientId}/logout-notices`;
    const call = (browser: Client, method: string, tail = '') =>
      browser.send(method, path + tail, { address: newAddress() });
    const { json } = await call(owner, 'GET');
    const letters = json.dead_letters as { id: string }[];
    const [first, second] = letters.map(({ id }) => `/${id}`);
    expect(letters).toHaveLength(2);
    expect((await call(stranger, 'GET')).status).toBe(404);
    expect((await call(stranger, 'POST', `${first}/repeat`)).status).toBe(404);
    expect((await call(owner, 'POST', `${first}/repeat`)).status).toBe(204);
    await expect.poll(() => receiver.received.length).toBe(1);
    expect((await call(owner, 'DELETE', second)).status).toBe(204);
  });
});

describe('a notice that names the person alone', () => {
  it('is not sent after the person signed in again, because it would end the new session', async () => {
    const { application, receiver, userId } = await ground();
    const old = randomUUID();
    await queue(application.clientId, { userId, minutesAgo: 10 });
    await queue(application.clientId, { userId, sid: old, minutesAgo: 10 });
    await expect.poll(() => notices(userId)).toEqual([]);
    // The notice about the earlier session is sent, because it does not end the new one.
    expect(receiver.received).toHaveLength(1);
    const [, claims = ''] = receiver.received[0]?.token.split('.') ?? [];
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({ sid: old });
  });

  it('is sent if the last sign-in was before the end', async () => {
    const { application, receiver, userId } = await ground();
    await queue(application.clientId, { userId });
    await expect.poll(() => receiver.received.length).toBe(1);
    await expect.poll(() => notices(userId)).toEqual([]);
  });
});

describe('receivers that hang at their first notice', () => {
  it('twelve of one organization delay no other one of it that took notices, and none of another', async () => {
    const own = await ground();
    const other = await ground();
    await queue(own.application.clientId);
    await expect.poll(() => own.receiver.received.length).toBe(1);
    const hanging = await startLogoutReceiver();
    receivers.push(hanging);
    hanging.answer = () => 'hang';
    const clients = await Promise.all(
      Array.from({ length: 12 }, () =>
        registerApplication(own.client, { backchannel_logout_uri: hanging.uri }),
      ),
    );
    for (const { clientId } of clients) await queue(clientId);
    await expect.poll(() => hanging.received.length).toBe(8);
    for (let n = 0; n < 10; n += 1) await queue(own.application.clientId);
    await queue(other.application.clientId);
    const both = () => [own.receiver.received.length, other.receiver.received.length];
    // A request that hangs times out after 5 s: none of these notices waits for that.
    await expect.poll(both, { timeout: 4_000 }).toEqual([11, 1]);
    expect(hanging.received).toHaveLength(8);
  });
});

describe('a lease', () => {
  it('is by the clock of the database: a replica whose clock is ahead takes no notice of another', async () => {
    const { application, receiver } = await ground();
    receiver.answer = () => 'hang';
    await queue(application.clientId);
    await expect.poll(() => receiver.received.length).toBe(1);
    const [before] = await rows<{ lease: number; left: number }>(
      app.dataSource,
      'SELECT lease, extract(epoch FROM next_attempt_at - now())::float8 AS left FROM logout_notices',
    );
    expect(before?.lease).toBe(1);
    expect(before?.left).toBeGreaterThan(0);
    expect(before?.left).toBeLessThanOrEqual(15);
    clock.advance(HOUR);
    wake();
    wake();
    await expect
      .poll(() => count(app.dataSource, "logout_notices WHERE last_result LIKE 'no answer%'"), {
        timeout: 90_000,
      })
      .toBe(1);
    expect(receiver.most()).toBe(1);
  });
});

describe('an unconfirmed start of PostgreSQL', () => {
  it('gives no logout token until it is confirmed', async () => {
    const { application, receiver } = await ground();
    const startedAt = (change: string) =>
      app.dataSource.query(`UPDATE database_identity SET started_at = started_at ${change}`);
    // Opens all 5 connections before, because a new connection to an unconfirmed server makes the
    // service confirm the server at once.
    await Promise.all(
      Array.from({ length: 5 }, () => app.dataSource.query('SELECT pg_sleep(0.02)')),
    );
    await startedAt("- interval '1 microsecond'");
    await queue(application.clientId);
    await expect
      .poll(() => app.log.filter((line) => line.includes('The queue of logout notices waits')))
      .not.toEqual([]);
    expect(receiver.received).toEqual([]);
    await startedAt("+ interval '1 microsecond'");
    await expect.poll(() => receiver.received.length, { timeout: 90_000 }).toBe(1);
  });
});

describe('a grant that ends soon because its code came twice', () => {
  it('tells the clients of the session that the client had opened for it', async () => {
    const { application, receiver, userId, sid } = await ground();
    receiver.answer = () => 503;
    const [grant] = await rows<{ id: Buffer }>(
      app.dataSource,
      `WITH own AS (UPDATE sessions SET client_id = $2 WHERE sid = $1 RETURNING id)
       SELECT g.id FROM oauth_grants g JOIN own ON own.id = g.session_id`,
      [sid, application.clientId],
    );
    await app.dataSource.transaction((tx) => endGrantSoon(tx, grant?.id ?? Buffer.alloc(0)));
    expect((await notices(userId)).map((one) => one.sid)).toEqual([sid]);
  });
});

describe('the figures of notices', () => {
  const API = '/api/v1/applications';
  const get = (browser: Client, path: string) => browser.get(path, { address: newAddress() });

  it('are waiting, oldest, sent and failed: of the application, and of the organization by kind', async () => {
    const { client, application, receiver } = await ground();
    await queue(application.clientId);
    await expect.poll(() => receiver.received.length).toBe(1);
    receiver.answer = () => 503;
    await queue(application.clientId);
    await rows(
      app.dataSource,
      "UPDATE logout_notices SET give_up_at = now(), next_attempt_at = '-infinity'",
    );
    wake();
    await expect.poll(() => count(app.dataSource, 'logout_notices WHERE dead_at IS NULL')).toBe(0);
    await queue(application.clientId, { minutesAgo: 3 });
    const read = async () =>
      (await get(client, `${API}/${application.clientId}/logout-notices`)).json;
    expect(await read()).toMatchObject({ waiting: 1, sent: 1, failed: 1 });
    const { oldest } = (await read()) as { oldest: string };
    expect(Date.now() - Date.parse(oldest)).toBeGreaterThanOrEqual(3 * 60_000);
    const { text } = await get(client, '/admin/applications');
    const row = text.slice(text.indexOf('data-notices="back-channel-logout"')).split('</tr>')[0];
    expect([...(row ?? '').matchAll(/<td[^>]*>(\d+)<\/td>/g)].map(([, n]) => n)).toEqual([
      '1',
      '1',
      '1',
    ]);
    const stranger = await ground();
    const other = await get(stranger.client, '/admin/applications');
    expect(other.text).toContain('<td data-label="Waiting">0</td>');
  });

  it('that are bad are one line of security an hour, for applications of organizations alone', async () => {
    const { application, receiver } = await ground();
    receiver.answer = () => 503;
    const watch = app.nest.get(NoticeWatch, { strict: false });
    const lines = () => securityLines().filter((line) => line.includes('have not heard'));
    const before = lines().length;
    await rows(
      app.dataSource,
      `INSERT INTO logout_notices (client_id, self_registered, user_id, created_at, next_attempt_at)
       VALUES ('itself', true, gen_random_uuid(), now() - interval '5 hours', now() + interval '1 hour')`,
    );
    await watch.look();
    expect(lines()).toHaveLength(before);
    await queue(application.clientId, { minutesAgo: 20 });
    await watch.look();
    await watch.look();
    const [line = ''] = lines().slice(before);
    expect(lines()).toHaveLength(before + 1);
    expect(JSON.parse(line)).toMatchObject({ kind: 'back-channel-logout', waiting: 1 });
    clock.advance(HOUR);
    await watch.look();
    expect(lines()).toHaveLength(before + 2);
  });

  it('are kept for 30 days', async () => {
    await rows(
      app.dataSource,
      `INSERT INTO notice_counts (client_id, kind, day, self_registered, sent)
       VALUES ('kept', 'x', current_date - 30, false, 1), ('gone', 'x', current_date - 31, false, 1)`,
    );
    await app.nest.get(CleanUp, { strict: false }).run();
    expect(await count(app.dataSource, "notice_counts WHERE client_id = 'kept'")).toBe(1);
    expect(await count(app.dataSource, "notice_counts WHERE client_id = 'gone'")).toBe(0);
  });
});
