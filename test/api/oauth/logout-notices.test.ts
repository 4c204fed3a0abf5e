import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AccessRevocation } from '../../../src/domain/access-revocation/access-revocation.service.js';
import { EVERY_SCOPE } from '../../../src/domain/access-revocation/revocable.js';
import { everyRevocation } from '../../../src/domain/admin/revocation-kinds/every-revocation.js';
import { CleanUp } from '../../../src/domain/admin/clean-up/clean-up.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Application } from '../../support/applications.js';
import { newAddress, type Client } from '../../support/client.js';
import { addKey, keysOf } from '../../support/keys.js';
import { startLogoutReceiver, type LogoutReceiver } from '../../support/logout-receiver.js';
import { CALLBACK } from '../../support/oauth-flow.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';
import { foundOrganization } from '../../support/scim-organization.js';
import {
  noticesAbout,
  registerApplication,
  signInTo,
} from '../../support/signed-in-application.js';

const API = '/api/v1/applications';
const CAUSE = { reason: 'a test', revokedBy: 'operator' };

let app: TestApp;
/** A receiver that answers 503, so that all notices stay in the queue. */
let busy: LogoutReceiver;
beforeAll(async () => {
  app = await startTestApp({ environment: { SVC_CLEANUP_INTERVAL: '0' } });
  busy = await startLogoutReceiver();
  busy.answer = () => 503;
});
afterAll(async () => {
  await app.close();
  await busy.close();
});

let people = 0;

/** Creates an admin who is signed in to an application with a back-channel logout URI. */
async function signedIn(body: Readonly<Record<string, unknown>> = {}) {
  people += 1;
  const email = `ada@told-${people}.example`;
  const { client, key } = await app.enrolled(email);
  const application = await registerApplication(client, {
    backchannel_logout_uri: busy.uri,
    ...body,
  });
  const { claims } = await signInTo(app, client, application);
  const userId = await idOf(app, email);
  return { email, client, key, application, userId, sid: claims['sid'] as string };
}

const told = async (userId: string) =>
  (await noticesAbout(app, userId)).map(({ client_id, sid }) => [client_id, sid]);
const addressed = (browser: Client, method: string, path: string, body?: unknown) =>
  browser.send(method, path, { address: newAddress(), ...(body === undefined ? {} : { body }) });
const sidsOf = async (userId: string) =>
  (
    await rows<{ sid: string }>(
      app.dataSource,
      'SELECT sid FROM client_sign_ins WHERE user_id = $1 ORDER BY last_at, sid',
      [userId],
    )
  ).map(({ sid }) => sid);

describe('the id of a session for applications', () => {
  it('is in each ID token of a session, and is neither the key nor the token of the session', async () => {
    const { client, application, userId, sid } = await signedIn();
    const again = await signInTo(app, client, application);
    expect([typeof sid, again.claims['sid']]).toEqual(['string', sid]);
    const sessions = await rows<{ id: string; sid: string }>(
      app.dataSource,
      'SELECT id, sid FROM sessions WHERE user_id = $1',
      [userId],
    );
    expect(sessions.map((session) => session.sid)).toEqual([sid]);
    expect([sessions[0]?.id, client.cookie('svc_session')]).not.toContain(sid);
    const other = await signedIn();
    expect(other.sid).not.toBe(sid);
  });

  it('stays the same if a client asks for it by the claims parameter, and is not in userinfo', async () => {
    const { client, application, sid } = await signedIn();
    const claims = JSON.stringify({ id_token: { sid: { essential: true } } });
    const asked = await signInTo(app, client, application, { claims });
    expect(asked.claims['sid']).toBe(sid);
    const userinfo = await app
      .client()
      .get('/oauth/userinfo', { headers: { authorization: `Bearer ${asked.accessToken}` } });
    expect([userinfo.status, 'sid' in userinfo.json]).toEqual([200, false]);
  });

  it('is recorded with the grant, and the record outlives session, grant and user', async () => {
    const { client, userId, sid, application } = await signedIn();
    await addressed(client, 'POST', '/logout');
    await rows(app.dataSource, 'DELETE FROM users WHERE id = $1', [userId]);
    expect(
      await rows(
        app.dataSource,
        'SELECT client_id, sid, user_id FROM client_sign_ins WHERE user_id = $1',
        [userId],
      ),
    ).toEqual([{ client_id: application.clientId, sid, user_id: userId }]);
  });

  it('is recorded for the newest 20 sessions of a person at a client', async () => {
    const userId = randomUUID();
    await rows(
      app.dataSource,
      `INSERT INTO client_sign_ins (sid, client_id, user_id, last_at)
       SELECT gen_random_uuid(), 'a', $1, now() - make_interval(days => n) FROM generate_series(1, 20) n`,
      [userId],
    );
    const [oldest, ...kept] = await sidsOf(userId);
    const newest = randomUUID();
    await rows(
      app.dataSource,
      "INSERT INTO client_sign_ins (sid, client_id, user_id) VALUES ($1, 'a', $2), ($1, 'b', $2)",
      [newest, userId],
    );
    const left = await sidsOf(userId);
    expect(left).toEqual([...kept, newest, newest]);
    expect(left).not.toContain(oldest);
  });

  it('is kept for 400 days', async () => {
    const [old, young] = [randomUUID(), randomUUID()];
    await rows(
      app.dataSource,
      `INSERT INTO client_sign_ins (sid, client_id, user_id, last_at)
       VALUES ($1, 'a', $1, now() - interval '401 days'), ($2, 'a', $2, now() - interval '399 days')`,
      [old, young],
    );
    await app.nest.get(CleanUp, { strict: false }).run();
    expect([await sidsOf(old), await sidsOf(young)]).toEqual([[], [young]]);
  });
});

describe('a notice is queued for the session', () => {
  it('of a browser that logs out', async () => {
    const { client, application, userId, sid } = await signedIn();
    await addressed(client, 'POST', '/logout');
    expect(await told(userId)).toEqual([[application.clientId, sid]]);
  });

  it('that a user ends by its id, and for each other one that the user ends', async () => {
    const { client, key, application, userId, sid } = await signedIn();
    const second = app.client();
    await second.logIn(key, { address: newAddress() });
    const { claims } = await signInTo(app, second, application);
    const third = app.client();
    await third.logIn(key, { address: newAddress() });
    const last = await signInTo(app, third, application);
    const [row] = await rows<{ id: string }>(
      app.dataSource,
      'SELECT id FROM sessions WHERE sid = $1',
      [claims['sid']],
    );
    expect((await addressed(client, 'DELETE', `/v1/sessions/${row?.id}`)).status).toBe(204);
    expect(await told(userId)).toEqual([[application.clientId, claims['sid']]]);
    expect((await addressed(client, 'POST', '/v1/sessions/end-others', {})).status).toBeLessThan(
      300,
    );
    const sids = (await told(userId)).map(([, one]) => one);
    expect(sids).toEqual([claims['sid'], last.claims['sid']]);
    expect(sids).not.toContain(sid);
  });

  it('that a removed key opened, also if the session has expired since, and for no other one', async () => {
    const { email, client, application, userId, sid } = await signedIn();
    const spare = app.newKey();
    expect((await addKey(app, client, spare, 'Spare')).status).toBe(200);
    const other = app.client();
    await other.logIn(spare, { address: newAddress() });
    const { claims } = await signInTo(app, other, application);
    await rows(
      app.dataSource,
      "UPDATE sessions SET expires_at = now() - interval '1 hour' WHERE sid = $1",
      [claims['sid']],
    );
    await app.nest.get(CleanUp, { strict: false }).run();
    expect(await told(userId)).toEqual([]);
    const removed = (await keysOf(app, email)).find(({ name }) => name === 'Spare');
    expect((await addressed(client, 'DELETE', `/v1/keys/${removed?.id}`)).status).toBe(200);
    expect(await told(userId)).toEqual([[application.clientId, claims['sid']]]);
    expect(claims['sid']).not.toBe(sid);
  });

  it('that ends by its own time, only if the client asked for it', async () => {
    const silent = await signedIn();
    const asking = await signedIn({ backchannel_logout_at_session_end: true });
    await rows(
      app.dataSource,
      "UPDATE sessions SET expires_at = now() - interval '1 minute' WHERE user_id = ANY ($1)",
      [[silent.userId, asking.userId]],
    );
    await app.nest.get(CleanUp, { strict: false }).run();
    expect(await count(app.dataSource, 'sessions WHERE user_id = $1', [silent.userId])).toBe(0);
    expect(await told(silent.userId)).toEqual([]);
    expect(await told(asking.userId)).toEqual([[asking.application.clientId, asking.sid]]);
  });

  it('only to clients that registered an address, and to none of another user', async () => {
    const { client, userId, application, sid } = await signedIn();
    const deaf = await registerApplication(client, {});
    await signInTo(app, client, deaf);
    const bystander = await signedIn();
    await addressed(client, 'POST', '/logout');
    expect(await told(userId)).toEqual([[application.clientId, sid]]);
    expect(await told(bystander.userId)).toEqual([]);
  });

  it('once if 20 logouts of a session come at once', async () => {
    const { client, userId, application, sid } = await signedIn();
    await Promise.all(
      Array.from({ length: 20 }, () =>
        client.copy().send('POST', '/logout', { address: newAddress() }),
      ),
    );
    expect(await told(userId)).toEqual([[application.clientId, sid]]);
  });

  it('of each user whose sessions end because the database lost commits', async () => {
    const { userId, application, sid } = await signedIn();
    await everyRevocation().endOnRecord((work) => app.dataSource.transaction(work), CAUSE);
    expect(await told(userId)).toEqual([[application.clientId, sid]]);
  });

  it('never by a transaction that is rolled back', async () => {
    const { userId } = await signedIn();
    const revocation = app.nest.get(AccessRevocation, { strict: false });
    const seen = await app.dataSource
      .transaction(async (tx) => {
        await tx.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [userId]);
        await revocation.end(tx, [{ id: userId }], 'account-deactivated', CAUSE);
        const [{ n }] = await tx.query<[{ n: number }]>(
          'SELECT count(*)::int AS n FROM logout_notices WHERE user_id = $1',
          [userId],
        );
        throw new Error(`rolled back with ${n}`);
      })
      .catch((error: Error) => error.message);
    expect(seen).toBe('rolled back with 2');
    expect(await told(userId)).toEqual([]);
  });
});

describe('the end of an account', () => {
  it.each([...EVERY_SCOPE])(
    'by %s tells each session on record once, and the person alone',
    async (scope) => {
      const { client, key, application, userId, sid } = await signedIn();
      await addressed(client, 'POST', '/logout');
      await client.logIn(key, { address: newAddress() });
      const { claims } = await signInTo(app, client, application);
      await rows(app.dataSource, 'DELETE FROM logout_notices WHERE user_id = $1', [userId]);
      await app.dataSource.transaction(async (tx) => {
        await tx.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [userId]);
        await everyRevocation().end(tx, [{ id: userId }], scope, CAUSE);
      });
      const sids = (await told(userId)).map(([, one]) => one);
      expect(sids.toSorted()).toEqual([sid, claims['sid'], null].toSorted());
    },
  );

  it('leaves out the notice without a session for a client that requires one', async () => {
    const { userId, sid } = await signedIn({ backchannel_logout_session_required: true });
    await app.dataSource.transaction(async (tx) => {
      await tx.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [userId]);
      await everyRevocation().end(tx, [{ id: userId }], 'account-deleted', CAUSE);
    });
    expect((await told(userId)).map(([, one]) => one)).toEqual([sid]);
  });

  it.each(['deactivate', 'revoke-credentials', 'remove'] as const)(
    'by the act %s of an admin is told',
    async (act) => {
      const domain = `ends-${act}.example`;
      const admin = await app.enrolled(`admin@${domain}`);
      const { client: bob } = await app.enrolled(`bob@${domain}`);
      const application = await registerApplication(admin.client, {
        backchannel_logout_uri: busy.uri,
      });
      const { claims } = await signInTo(app, bob, application);
      const id = await idOf(app, `bob@${domain}`);
      const answer = await orgApi(admin.client, 'POST', `/members/${id}/${act}`);
      expect(answer.status).toBeLessThan(300);
      expect((await told(id)).map(([, one]) => one).toSorted()).toEqual(
        [claims['sid'], null].toSorted(),
      );
    },
  );

  it('by SCIM DELETE is told nine hours after the session ended', async () => {
    const { admin, scim } = await foundOrganization(app, 'leaver.example');
    const made = await scim('POST', '/Users', {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: 'bob@leaver.example',
    });
    expect(made.status).toBe(201);
    const { client: bob } = await app.enrolled('bob@leaver.example');
    const application = await registerApplication(admin.client, {
      backchannel_logout_uri: busy.uri,
    });
    const { claims } = await signInTo(app, bob, application);
    const { id } = made.json as { id: string };
    await rows(
      app.dataSource,
      "UPDATE sessions SET expires_at = now() - interval '1 hour' WHERE user_id = $1",
      [id],
    );
    await app.nest.get(CleanUp, { strict: false }).run();
    expect(await told(id)).toEqual([]);
    expect((await scim('DELETE', `/Users/${id}`)).status).toBe(204);
    expect((await told(id)).map(([, one]) => one)).toEqual([claims['sid'], null]);
  });
});

describe('back-channel logout at registration', () => {
  const SETTINGS = {
    backchannel_logout_uri: 'https://127.0.0.1/logout',
    backchannel_logout_session_required: true,
    backchannel_logout_at_session_end: true,
  };
  const NONE = {
    backchannel_logout_uri: null,
    backchannel_logout_session_required: false,
    backchannel_logout_at_session_end: false,
  };

  it('is in the discovery document', async () => {
    const { json } = await app.client().get('/.well-known/openid-configuration');
    expect(json).toMatchObject({
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: true,
      claims_supported: expect.arrayContaining(['sid']),
    });
  });

  it('is set, shown and reset by the API of applications', async () => {
    const { client } = await signedIn();
    const { clientId } = await registerApplication(client, SETTINGS);
    const shown = await addressed(client, 'GET', `${API}/${clientId}`);
    expect(shown.json).toMatchObject(SETTINGS);
    const body = Object.fromEntries(Object.keys(SETTINGS).map((name) => [name, null]));
    const reset = await addressed(client, 'PATCH', `${API}/${clientId}`, body);
    expect([reset.status, reset.json]).toEqual([200, expect.objectContaining(NONE)]);
  });

  it.each<readonly [string, object]>([
    ['plain http', { backchannel_logout_uri: 'http://app.example/logout' }],
    ['a fragment', { backchannel_logout_uri: 'https://127.0.0.1/logout#x' }],
    ['a private address', { backchannel_logout_uri: 'https://10.0.0.1/logout' }],
    ['the metadata of a cloud', { backchannel_logout_uri: 'https://169.254.169.254/logout' }],
    ['no address', { backchannel_logout_uri: 'logout' }],
    ['a number', { backchannel_logout_uri: 7 }],
    ['a flag that is none', { backchannel_logout_session_required: 'yes' }],
  ])('refuses %s at the API and at the dynamic registration', async (_, wrong) => {
    const { client } = await signedIn();
    const body = { name: 'Wrong', type: 'web', redirect_uris: [CALLBACK], ...wrong };
    const refused = await addressed(client, 'POST', API, body);
    expect([refused.status, refused.json.code]).toEqual([400, 'invalid_request']);
    const own = await addressed(app.client(), 'POST', '/oauth/register', {
      redirect_uris: [CALLBACK],
      ...wrong,
    });
    expect([own.status, own.json.error]).toEqual([400, 'invalid_client_metadata']);
  });

  it('refuses an address of a service, which signs no person in', async () => {
    const { client } = await signedIn();
    const body = { name: 'S', type: 'service', backchannel_logout_uri: busy.uri };
    expect((await addressed(client, 'POST', API, body)).status).toBe(400);
  });

  it('is kept by the dynamic registration, and a client that registered itself is told', async () => {
    const { client, userId } = await signedIn();
    const registered = await app.client().post('/oauth/register', {
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'client_secret_post',
      backchannel_logout_uri: busy.uri,
      backchannel_logout_session_required: true,
    });
    expect([registered.status, registered.json]).toEqual([
      201,
      expect.objectContaining({
        backchannel_logout_uri: busy.uri,
        backchannel_logout_session_required: true,
      }),
    ]);
    const own: Application = {
      clientId: registered.json.client_id as string,
      clientSecret: registered.json.client_secret as string,
    };
    const { claims } = await signInTo(app, client, own);
    await addressed(client, 'POST', '/logout');
    expect(await told(userId)).toContainEqual([own.clientId, claims['sid']]);
    const removed = await app.client().send('DELETE', `/oauth/register/${own.clientId}`, {
      address: newAddress(),
      headers: { authorization: `Bearer ${registered.json.registration_access_token as string}` },
    });
    expect(removed.status).toBe(204);
    expect((await told(userId)).map(([clientId]) => clientId)).not.toContain(own.clientId);
  });
});
