import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  RoutePolicies,
  type CompiledRoute,
} from '../../../src/platform/http/routing/route-policies.js';
import { addHostGroup, addRole } from '../../support/access-api.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { databaseDigest } from '../../support/database-digest.js';
import { addKey, keysOf, touchedAgo } from '../../support/keys.js';
import { CALLBACK, authorize, newPkce } from '../../support/oauth-flow.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

const ADMIN = 'ada@every-write.example';
const MEMBER = 'grace@every-write.example';
const ABSENT = '00000000-0000-7000-8000-000000000000';
const WRITES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/**
 * The writes outside SCIM that read no session cookie, so that a page of any origin may send them,
 * with what authorizes each.
 */
const WITHOUT_COOKIE: Readonly<Record<string, string>> = {
  'POST /saml/acs': 'the signed response, in the browser that the service sent to the provider',
  'POST /api/webhooks/github': 'the signature of GitHub',
  'POST /oauth/authorize': 'nothing: it asks, and only a page of the service agrees',
  'POST /oauth/par': 'the client authentication',
  'POST /oauth/token': 'the client authentication',
  'POST /oauth/fido2/challenge': 'the client authentication',
  'POST /oauth/device': 'the client authentication',
  'POST /oauth/introspect': 'the client authentication',
  'POST /oauth/revoke': 'the client authentication',
  'POST /oauth/userinfo': 'the access token; it reads',
  'POST /oauth/register': 'nothing: a client registers itself',
  'PUT /oauth/register/:clientId': 'the registration access token',
  'DELETE /oauth/register/:clientId': 'the registration access token',
  'POST /oauth/logout': 'nothing: it asks',
  'POST /oauth/logout/confirm': 'the secret of the form that asked',
};

describe('every write of the service', () => {
  let app: TestApp;
  let browser: Client;
  let written: readonly CompiledRoute[];
  let routes: readonly CompiledRoute[];
  /**
   * For parts of route templates: the path of a thing that exists. With it a write changes the
   * database if it is wrongly let through.
   */
  let places: Readonly<Record<string, string>>;
  beforeAll(async () => {
    app = await startTestApp();
    const ada = await app.enrolled(ADMIN);
    const grace = await app.enrolled(MEMBER);
    browser = ada.client;
    await addKey(app, browser, app.newKey(), 'Second');
    await addKey(app, grace.client, app.newKey(), 'Second');
    await app.client().logIn(ada.key);
    places = { ...(await ownThings()), ...(await thingsOfTheOrganization(grace.client)) };
    written = app.nest.get(RoutePolicies).routes.filter(({ method }) => WRITES.has(method));
    routes = written.filter(
      ({ policy }) => !['provisioner', 'client', 'program'].includes(policy.auth.session),
    );
  });
  afterAll(() => app.close());

  /**
   * Sends a POST to the API in the session of the admin, and throws if the status is above 201.
   * @returns the JSON of the answer
   */
  async function made(path: string, body: object): Promise<Record<string, string>> {
    const answer = await browser.post(path, body, { address: newAddress() });
    if (answer.status > 201) throw new Error(`${path}: ${answer.text}`);
    return answer.json as Record<string, string>;
  }

  /**
   * Returns the id of the newest session of the user with an e-mail address, or an empty string.
   */
  async function sessionOf(email: string): Promise<string> {
    const [session] = await rows<{ id: string }>(
      app.dataSource,
      `SELECT s.id FROM sessions s JOIN users u ON u.id = s.user_id
       WHERE u.email = $1 ORDER BY s.created_at DESC LIMIT 1`,
      [email],
    );
    return session?.id ?? '';
  }

  async function ownThings() {
    const { serial = '' } = await made('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    const application = { name: 'Site', type: 'web', redirect_uris: [CALLBACK] };
    const { client_id: clientId = '' } = await made('/api/v1/applications', application);
    await authorize(browser, {
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    });
    const { json } = await browser.get(`/api/v1/applications/${clientId}/secrets`);
    const [secret] = (json as { secrets: { id: string }[] }).secrets;
    return {
      'v1/keys/:id': `v1/keys/${(await keysOf(app, ADMIN))[1]?.id}`,
      'v1/sessions/:id': `v1/sessions/${await sessionOf(ADMIN)}`,
      ':serial': serial,
      'account/applications/:client_id': `account/applications/${clientId}`,
      'v1/applications/:id': `v1/applications/${clientId}`,
      ':secretId': secret?.id ?? '',
      ':noticeId': await deadLetterOf(clientId),
      ':signalId': await deadSignalOf(clientId),
    };
  }

  /**
   * Inserts a logout notice whose delivery to an application failed for good.
   *
   * @returns its id
   */
  async function deadLetterOf(clientId: string): Promise<string> {
    const [letter] = await rows<{ id: string }>(
      app.dataSource,
      `INSERT INTO logout_notices (client_id, self_registered, user_id, dead_at)
       VALUES ($1, false, $2, now()) RETURNING id`,
      [clientId, randomUUID()],
    );
    return letter?.id ?? '';
  }

  /**
   * Inserts a signal whose delivery to the stream of an application failed for good.
   *
   * @returns its id
   */
  async function deadSignalOf(clientId: string): Promise<string> {
    await rows(
      app.dataSource,
      `INSERT INTO signal_receivers (client_id, subject_format) VALUES ($1, 'iss_sub')
       ON CONFLICT DO NOTHING`,
      [clientId],
    );
    await rows(
      app.dataSource,
      `INSERT INTO signal_streams (id, client_id, org_id, method, events)
       SELECT gen_random_uuid(), id, org_id, 'poll', '{}' FROM oauth_clients WHERE id = $1
       ON CONFLICT DO NOTHING`,
      [clientId],
    );
    const [letter] = await rows<{ id: string }>(
      app.dataSource,
      `INSERT INTO signal_events (stream_id, subject_id, type, dead_at)
       SELECT id, id, 'verification', now() FROM signal_streams WHERE client_id = $1 RETURNING id`,
      [clientId],
    );
    return letter?.id ?? '';
  }

  async function thingsOfTheOrganization(grace: Client) {
    const org = '/api/v1/org';
    const { id: token } = await made(`${org}/scim-tokens`, { description: 'Okta' });
    const api = await made(`${org}/api-tokens`, { name: 'SIEM', scopes: ['audit:read'] });
    const { id: question } = await made(`${org}/audit-questions`, { name: 'Who', person: 'grace' });
    await made(`${org}/domains`, { domain: 'lab-every-write.example' });
    const { providers } = (await orgApi(browser, 'GET', '/providers')).json;
    await rows(
      app.dataSource,
      `INSERT INTO github_installations (id, org_id, account_id, owner, repository_selection, changed_at, linked_by)
       SELECT 77, org_id, 78, 'octo', 'all', now(), id FROM users WHERE email = $1`,
      [ADMIN],
    );
    const role = await addRole(browser, 'arn:aws:iam::123456789012:role/Deploy');
    const group = await addHostGroup(browser, 'prod');
    const listed = randomUUID();
    await rows(
      app.dataSource,
      `INSERT INTO secrets_to_confirm (id, org_id, secret, secret_id, name, act, is_lost, happened_at)
       SELECT $2, org_id, 'scim_token', $3, 'Okta', 'made', false, now() FROM users WHERE email = $1`,
      [ADMIN, listed, token],
    );
    return {
      'secrets-to-confirm/:id': `secrets-to-confirm/${listed}`,
      'members/:id': `members/${await idOf(app, MEMBER)}`,
      ':session_id': await sessionOf(MEMBER),
      ':key_id': (await keysOf(app, MEMBER))[1]?.id ?? '',
      'org/scim-tokens/:id': `org/scim-tokens/${token}`,
      'api-tokens/:id': `api-tokens/${api['id']}`,
      'audit-questions/:id': `audit-questions/${question}`,
      ...(await receiverWithLetter()),
      ':domain': 'lab-every-write.example',
      'providers/:id': `providers/${(providers as { id: string }[])[0]?.id}`,
      'installations/:id': 'installations/77',
      'access/aws_role/:id': `access${role}`,
      'access/host_group/:id': `access${group}`,
      'access/:kind/:id': `access${group}`,
      // An application that a colleague owns. The test about a demoted admin uses it.
      colleague: await applicationOf(grace),
    };
  }

  /**
   * Inserts an event receiver with an undelivered event. The receiver is paused, so that the
   * service does not send the event and change the database.
   */
  async function receiverWithLetter() {
    const [receiver] = await rows<{ id: string }>(
      app.dataSource,
      `INSERT INTO event_receivers (id, org_id, kind, name, url, secret_sealed, status, created_by, address_by, epoch, xid, event_id)
       SELECT gen_random_uuid(), org_id, 'webhook', 'SIEM', 'https://siem.example/', 'x', 'paused', id, id, 0, '0', id
       FROM users WHERE email = $1 RETURNING id`,
      [ADMIN],
    );
    const [letter] = await rows<{ id: string }>(
      app.dataSource,
      `INSERT INTO undelivered_events (receiver_id, event_id, type, event_at, dead_at)
       VALUES ($1, gen_random_uuid(), 'logout', now(), now()) RETURNING id`,
      [receiver?.id],
    );
    return {
      'event-receivers/:id': `event-receivers/${receiver?.id}`,
      ':letter_id': letter?.id ?? '',
    };
  }

  async function applicationOf(member: Client): Promise<string> {
    const body = { name: 'Own', type: 'web', redirect_uris: [CALLBACK] };
    const answer = await member.post('/api/v1/applications', body, { address: newAddress() });
    return (answer.json as { client_id: string }).client_id;
  }

  const database = () => databaseDigest(app.dataSource);

  /**
   * Returns the path of a route with things that exist. For parameters without one it has an id
   * that does not exist.
   */
  const pathOf = ({ template }: CompiledRoute) =>
    Object.entries(places)
      .reduce((path, [part, real]) => path.replace(part, real), template)
      .replaceAll(/:\w+/g, ABSENT);

  /**
   * Sends a write with the same headers to each route. Returns the status and the problem code of
   * each answer by route.
   */
  async function sendAll(
    to: readonly CompiledRoute[],
    headers: Record<string, string>,
  ): Promise<Record<string, string>> {
    const answers: Record<string, string> = {};
    for (const route of to) {
      const options = { address: newAddress(), headers };
      const body = route.policy.body.kind === 'json' ? { body: {} } : {};
      const answer = await browser.send(route.method, pathOf(route), { ...options, ...body });
      const code = (answer.json as { code?: string } | undefined)?.code;
      answers[`${route.method} ${route.template}`] = [answer.status, code].join(' ').trim();
    }
    return answers;
  }

  const nameOf = ({ method, template }: CompiledRoute) => `${method} ${template}`;
  const all = (of: readonly CompiledRoute[], answer: string) =>
    Object.fromEntries(of.map((route) => [nameOf(route), answer]));
  const ofApi = ({ template }: CompiledRoute) => /^\/(?:api\/)?v1\//.test(template);
  const verified = () => routes.filter(({ policy }) => policy.auth.session === 'verified');

  it('is checked here with things that exist, or decided by something other than a cookie', () => {
    const withoutCookie = written.filter(({ policy }) => policy.auth.origin === 'any');
    const ofProvisioners = withoutCookie.filter(
      ({ policy }) => policy.auth.session === 'provisioner',
    );
    expect(ofProvisioners.every(({ template }) => template.startsWith('/scim/v2/'))).toBe(true);
    const ofClients = withoutCookie.filter(({ policy }) => policy.auth.session === 'client');
    expect(ofClients.every(({ template }) => template.startsWith('/ssf/'))).toBe(true);
    const ofPrograms = withoutCookie.filter(({ policy }) => policy.auth.session === 'program');
    expect(ofPrograms.map(nameOf)).toEqual(['POST /api/v1/programs/scim-tokens/:id/rotate']);
    const others = withoutCookie.filter(
      (route) => ![ofProvisioners, ofClients, ofPrograms].some((some) => some.includes(route)),
    );
    expect(others.map(nameOf).toSorted()).toEqual(Object.keys(WITHOUT_COOKIE).toSorted());
    expect(others.map(({ policy }) => policy.auth.session)).toEqual(others.map(() => 'none'));
    const withAbsent = routes.filter((route) => pathOf(route).includes(ABSENT)).map(nameOf);
    expect(withAbsent.filter((name) => !(name in WITHOUT_COOKIE))).toEqual([
      'POST /interaction/:uid/consent', // page-posts.test.ts tests these two with real interactions
      'POST /interaction/:uid/deny',
    ]);
  });

  it('refuses another origin and a missing one on every API route that reads the cookie', async () => {
    const before = await database();
    const checked = routes.filter((route) => ofApi(route) && route.policy.auth.session !== 'none');
    expect(checked.length).toBeGreaterThan(25);
    for (const origin of ['https://evil.example', 'null', '']) {
      expect(await sendAll(checked, { origin })).toEqual(all(checked, '403 invalid_origin'));
    }
    expect(await database()).toEqual(before);
  });

  it('refuses them on every page route too', async () => {
    const before = await database();
    const checked = routes.filter((route) => !ofApi(route) && route.policy.auth.origin !== 'any');
    expect(checked.length).toBeGreaterThan(8);
    for (const origin of ['https://evil.example', 'null', '']) {
      const answers = await sendAll(checked, { origin });
      expect(Object.values(answers).map((answer) => answer.slice(0, 3))).toEqual(
        checked.map(() => '403'),
      );
    }
    expect(await database()).toEqual(before);
  });

  it('refuses the write of a page that was made for another session', async () => {
    const before = await database();
    const checked = routes.filter(({ policy }) => policy.auth.session !== 'none');
    expect(checked.filter((route) => !ofApi(route)).map(nameOf)).toContain('POST /device/approve');
    const answers = await sendAll(checked, { 'svc-session': ABSENT });
    // These routes answer errors with an HTML page, which has no problem code.
    const asPage = new Set([
      'POST /logout',
      'POST /device',
      'POST /account/notices/dismiss',
      'POST /account/notices/one-key',
    ]);
    expect(answers).toEqual(
      Object.fromEntries(
        checked.map((route) => [
          nameOf(route),
          asPage.has(nameOf(route)) ? '409' : '409 stale_page',
        ]),
      ),
    );
    expect(await database()).toEqual(before);
  });

  it('refuses every write that demands a recent touch without one', async () => {
    const checked = verified().filter(({ policy }) => policy.auth.touchedWithinSeconds);
    expect(checked.length).toBeGreaterThan(15);
    await touchedAgo(app, ADMIN, 301);
    const before = await database();
    expect(await sendAll(checked, {})).toEqual(
      all(checked, '401 insufficient_user_authentication'),
    );
    expect(await database()).toEqual(before);
    await touchedAgo(app, ADMIN, 0);
  });

  it('demands a recent touch for every write of an admin but the deletion of a SCIM token', () => {
    const without = routes.filter(
      ({ template, policy }) =>
        template.startsWith('/api/v1/org') && !policy.auth.touchedWithinSeconds,
    );
    expect(without.map(({ method, template }) => `${method} ${template}`)).toEqual([
      'DELETE /api/v1/org/scim-tokens/:id',
    ]);
  });

  it('refuses every write of an admin who was demoted while the page was open', async () => {
    const asAdmin = await database();
    await rows(app.dataSource, 'UPDATE users SET is_org_admin = false WHERE email = $1', [ADMIN]);
    // shows that the digest notices a change of one row
    expect(await database()).not.toEqual(asAdmin);
    const checked = verified().filter(({ policy }) => policy.auth.scope === 'svc:admin');
    const before = await database();
    expect(await sendAll(checked, {})).toEqual(all(checked, '403 admin_required'));
    expect(await database()).toEqual(before);
  });

  it('refuses a demoted admin every write of the application of a colleague', async () => {
    await rows(app.dataSource, 'UPDATE users SET is_org_admin = false WHERE email = $1', [ADMIN]);
    const before = await database();
    const checked = verified().filter(({ template }) =>
      template.startsWith('/api/v1/applications/:id'),
    );
    expect(checked.length).toBe(12);
    places = { 'v1/applications/:id': `v1/applications/${places['colleague']}` };
    expect(await sendAll(checked, {})).toEqual(all(checked, '404 not_found'));
    expect(await database()).toEqual(before);
  });
});
