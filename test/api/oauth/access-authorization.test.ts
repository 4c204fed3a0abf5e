import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SignJWT } from 'jose';
import {
  ageTouches,
  assign,
  drain,
  lastRefusal,
  newGroup,
  provision,
  refusalsOf,
  setRule,
  unassign,
  type TestGroup,
} from '../../support/access-targets.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { addApplication, type Application } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { touchedAgo } from '../../support/keys.js';
import {
  CALLBACK,
  assertionFields,
  fapiMetadata,
  newClientKeys,
  newDpopKey,
  newPkce,
  postForm,
  type ClientKeys,
} from '../../support/oauth-flow.js';
import { count } from '../../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../../support/scim-organization.js';

const DOMAIN = 'reach.example';
const FIPS_MODEL = '73bb0cd4-e502-49b8-9c6f-b59445bf720b';
const NAME = 'Payroll <b>x</b>';

/** Where the redirects of a browser end: at a page of the service, or at the URL of the client. */
type End = { readonly page: Answer; readonly path: string } | { readonly client: URL };

describe('an authorization of a person who does not reach the application', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  let group: TestGroup;
  let application: Application;
  let fapi: Application;
  let fapiKeys: ClientKeys;
  const people = new Map<string, EnrolledUser>();
  const email = (name: string) =>
    name === 'foreign' ? 'eve@foreign.example' : `${name}@${DOMAIN}`;
  const browserOf = (name: string) => (people.get(name) as EnrolledUser).client;

  beforeAll(async () => {
    app = await startTestApp();
    organization = await foundOrganization(app, DOMAIN);
    const ids = new Map<string, string>();
    for (const name of ['grouped', 'direct', 'unassigned']) {
      ids.set(name, await provision(organization, email(name)));
      people.set(name, await app.enrolled(email(name)));
    }
    people.set('foreign', await app.enrolled(email('foreign')));
    group = await newGroup(organization, 'Payroll clerks', [ids.get('grouped') ?? '']);
    const metadata = {
      client_name: NAME,
      redirect_uris: [CALLBACK],
      grant_types: ['authorization_code'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_post',
    };
    const owner = `admin@${DOMAIN}`;
    application = await addApplication(app, metadata, { owner });
    fapiKeys = await newClientKeys();
    fapi = await addApplication(app, { ...fapiMetadata(fapiKeys), client_name: 'Bank' }, { owner });
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    for (const { clientId } of [application, fapi]) {
      await unassign(app, clientId);
      await setRule(app, clientId, { access: 'assigned' });
      await assign(app, clientId, { email: email('direct') });
      await assign(app, clientId, { groupId: group.id });
    }
    await drain(app);
    // Each test sees only the refusals that it causes itself.
    await app.dataSource.query("DELETE FROM audit_events WHERE type = 'access_refused'");
  });

  const requestOf = (more: Readonly<Record<string, string>> = {}) => ({
    client_id: application.clientId,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid email',
    state: 's-1',
    code_challenge: newPkce().challenge,
    code_challenge_method: 'S256',
    ...more,
  });

  /** Follows redirects from a path of the service to a page of the service, or to the client. */
  async function walk(browser: Client, path: string): Promise<End> {
    let next = path;
    for (let hops = 0; hops < 8; hops += 1) {
      const answer = await browser.get(next, { address: newAddress() });
      const location = answer.headers.get('location');
      if (location === null) return { page: answer, path: next };
      const url = new URL(location, browser.baseUrl);
      if (url.origin !== new URL(browser.baseUrl).origin) return { client: url };
      next = `${url.pathname}${url.search}`;
    }
    throw new Error('too many redirects');
  }
  const authorize = (browser: Client, request: Readonly<Record<string, string>>) =>
    walk(browser, `/oauth/authorize?${new URLSearchParams(request).toString()}`);

  /**
   * Consents if the redirects ended at a consent page, which an application of another organization
   * shows.
   */
  async function consented(browser: Client, end: End): Promise<End> {
    if (!('page' in end) || end.page.status !== 200) return end;
    const agreed = await browser.post(`${end.path}/consent`, {}, { address: newAddress() });
    return walk(browser, agreed.json.redirect_to as string);
  }
  const pageOf = (end: End) => {
    if (!('page' in end)) throw new Error(`no page, but ${end.client.href}`);
    return end;
  };
  const clientOf = (end: End) => {
    if (!('client' in end)) throw new Error(`no redirect, but ${end.page.text}`);
    return end.client.searchParams;
  };
  const target = { kind: 'application', name: NAME };

  it.each(['grouped', 'direct'])('a %s person gets a code', async (name) => {
    expect(clientOf(await authorize(browserOf(name), requestOf())).get('code')).not.toBeNull();
    expect(await refusalsOf(app, email(name))).toBe(0);
  });

  it.each(['unassigned', 'foreign'])(
    'a person who is %s sees a page, and the way back says access_denied',
    async (name) => {
      const browser = browserOf(name);
      const end = pageOf(await authorize(browser, requestOf()));
      expect(end.page.status).toBe(403);
      expect(end.page.headers.get('content-type')).toMatch(/^text\/html/);
      expect(end.page.text).toContain(
        'You are not assigned to <bdi>Payroll &lt;b&gt;x&lt;/b&gt;</bdi>',
      );
      expect(end.page.text).toContain('Ask an admin of your organization');
      for (const secret of ['Payroll clerks', group.id, email('grouped'), email('direct')]) {
        expect(end.page.text).not.toContain(secret);
      }
      expect(await lastRefusal(app, email(name))).toEqual({
        target: { ...target, id: application.clientId },
        rule: 'assignment',
      });
      expect(await refusalsOf(app, email(name))).toBe(1);
      const back = await browser.post(`${end.path}/deny`, {}, { address: newAddress() });
      const sent = clientOf(await walk(browser, back.json.redirect_to as string));
      expect(Object.fromEntries(sent)).toEqual({
        error: 'access_denied',
        error_description: expect.any(String) as string,
        state: 's-1',
        iss: app.baseUrl,
      });
    },
  );

  it.each(['unassigned', 'foreign'])(
    'with prompt=none the client of a person who is %s gets interaction_required at once',
    async (name) => {
      const sent = clientOf(await authorize(browserOf(name), requestOf({ prompt: 'none' })));
      expect([sent.get('error'), sent.get('state'), sent.get('iss')]).toEqual([
        'interaction_required',
        's-1',
        app.baseUrl,
      ]);
      expect(sent.get('code')).toBeNull();
      expect(await refusalsOf(app, email(name))).toBe(1);
    },
  );

  it('is not asked for consent first, and consent does not help', async () => {
    const browser = browserOf('unassigned');
    const asking = pageOf(await authorize(browser, requestOf({ prompt: 'consent' })));
    expect(asking.page.status).toBe(403);
    const forged = await browser.post(`${asking.path}/consent`, {}, { address: newAddress() });
    expect(forged.status).toBe(404);
  });

  it('goes on from the page when an admin has assigned the person meanwhile', async () => {
    const browser = browserOf('unassigned');
    const refused = pageOf(await authorize(browser, requestOf()));
    await assign(app, application.clientId, { email: email('unassigned') });
    expect(clientOf(await walk(browser, refused.path)).get('code')).not.toBeNull();
  });

  it('asks for the touch of max_age if the admin assigned the person later than that', async () => {
    const { client: browser, key } = people.get('unassigned') as EnrolledUser;
    await browser.logIn(key, { address: newAddress() });
    const refused = pageOf(await authorize(browser, requestOf({ max_age: '60' })));
    expect(refused.page.status).toBe(403);
    await assign(app, application.clientId, { email: email('unassigned') });
    await touchedAgo(app, email('unassigned'), 300);
    const login = new URL(pageOf(await walk(browser, refused.path)).path, app.baseUrl);
    expect(login.pathname).toBe('/login');
    await browser.logIn(key, { address: newAddress() });
    const onward = login.searchParams.get('redirect_to') ?? '';
    expect(clientOf(await walk(browser, onward)).get('code')).not.toBeNull();
  });

  it('a rule for everyone admits a person of another organization, as before', async () => {
    await setRule(app, application.clientId, { access: 'everyone' });
    const browser = browserOf('foreign');
    const end = await consented(browser, await authorize(browser, requestOf()));
    expect(clientOf(end).get('code')).not.toBeNull();
  });

  it('a request by POST and one that the client pushed are refused by the same page', async () => {
    const browser = browserOf('unassigned');
    const posted = await browser.send('POST', '/oauth/authorize', {
      address: newAddress(),
      body: new URLSearchParams(requestOf()).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    const { pathname, search } = new URL(posted.headers.get('location') ?? '', app.baseUrl);
    expect(pageOf(await walk(browser, pathname + search)).page.status).toBe(403);

    const { client_id: clientId, ...pushed } = requestOf();
    const secret = { client_id: clientId, client_secret: application.clientSecret };
    const par = await postForm(app, '/oauth/par', { ...pushed, ...secret });
    expect(par.status).toBe(201);
    const request = { client_id: clientId, request_uri: par.json.request_uri as string };
    const page = pageOf(await authorize(browser, request));
    expect(page.page.status).toBe(403);
    const back = await browser.post(`${page.path}/deny`, {}, { address: newAddress() });
    const sent = clientOf(await walk(browser, back.json.redirect_to as string));
    expect([sent.get('error'), sent.get('state')]).toEqual(['access_denied', 's-1']);
  });

  it('a FAPI client with a signed request object is refused and answered alike', async () => {
    const dpop = await newDpopKey();
    const { clientId } = fapi;
    const push = async (more: Record<string, string> = {}) => {
      const now = Math.floor(Date.now() / 1000);
      const claims = { ...requestOf(), client_id: clientId, dpop_jkt: dpop.thumbprint, ...more };
      const request = await new SignJWT({ ...claims, nbf: now, exp: now + 60 })
        .setProtectedHeader({ alg: 'ES256', kid: 'one' })
        .setIssuer(clientId)
        .setAudience(app.baseUrl)
        .setIssuedAt()
        .sign(fapiKeys.privateKey);
      const proof = await assertionFields(app, clientId, fapiKeys);
      const answer = await postForm(app, '/oauth/par', { ...proof, request });
      expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
      return { client_id: clientId, request_uri: answer.json.request_uri as string };
    };
    const browser = browserOf('unassigned');
    const page = pageOf(await authorize(browser, await push()));
    expect([page.page.status, page.page.text]).toEqual([403, expect.stringContaining('Bank')]);
    const back = await browser.post(`${page.path}/deny`, {}, { address: newAddress() });
    const sent = clientOf(await walk(browser, back.json.redirect_to as string));
    expect([sent.get('error'), sent.get('iss')]).toEqual(['access_denied', app.baseUrl]);
    const silent = clientOf(await authorize(browser, await push({ prompt: 'none' })));
    expect(silent.get('error')).toBe('interaction_required');
    const admitted = clientOf(await authorize(browserOf('direct'), await push()));
    expect(admitted.get('code')).not.toBeNull();
  });

  it('leaves no grant and no code behind', async () => {
    await authorize(browserOf('unassigned'), requestOf());
    const of = [application.clientId, email('unassigned')];
    const held = 'user_id = (SELECT id FROM users WHERE email = $2) AND client_id = $1';
    expect(await count(app.dataSource, `oauth_grants WHERE ${held}`, of)).toBe(0);
    expect(
      await count(app.dataSource, `oauth_artifacts WHERE model <> 'Interaction' AND ${held}`, of),
    ).toBe(0);
  });

  describe('with a condition', () => {
    it('asks for a touch that is recent enough, and then goes on', async () => {
      await setRule(app, application.clientId, { access: 'assigned', touchWithinSeconds: 600 });
      const { client: browser, key } = people.get('direct') as EnrolledUser;
      await browser.logIn(key, { address: newAddress() });
      expect(clientOf(await authorize(browser, requestOf())).get('code')).not.toBeNull();
      await ageTouches(app, email('direct'), 700);
      const silent = clientOf(await authorize(browser, requestOf({ prompt: 'none' })));
      expect(silent.get('error')).toBe('interaction_required');
      const login = pageOf(await authorize(browser, requestOf()));
      const address = new URL(login.path, app.baseUrl);
      expect([address.pathname, address.searchParams.get('again')]).toEqual(['/login', 'true']);
      expect(await lastRefusal(app, email('direct'))).toEqual({
        target: { ...target, id: application.clientId },
        rule: 'condition',
        conditions: { touchWithinSeconds: 600, models: null, userVerification: null },
      });
      await browser.logIn(key, { address: newAddress() });
      const onward = address.searchParams.get('redirect_to') ?? '';
      expect(clientOf(await walk(browser, onward)).get('code')).not.toBeNull();
    });

    it('says which key is needed after a touch by a key that does not fit, and does not loop', async () => {
      await setRule(app, application.clientId, { access: 'assigned', models: 'fips-only' });
      const { client: browser, key } = people.get('direct') as EnrolledUser;
      await ageTouches(app, email('direct'), 60);
      const login = pageOf(await authorize(browser, requestOf()));
      const onward = new URL(login.path, app.baseUrl).searchParams.get('redirect_to') ?? '';
      await browser.logIn(key, { address: newAddress() });
      const page = pageOf(await walk(browser, onward));
      expect(page.page.status).toBe(403);
      expect(page.page.text).toContain('a touch of a FIPS-certified security key');
      expect(page.page.text).toContain('href="/login?redirect_to=');
      const back = await browser.post(`${page.path}/deny`, {}, { address: newAddress() });
      const sent = clientOf(await walk(browser, back.json.redirect_to as string));
      expect(sent.get('error')).toBe('access_denied');
    });

    it('shows the page at once after a login in the same authorization', async () => {
      await setRule(app, application.clientId, { access: 'everyone', models: 'fips-only' });
      const { key } = people.get('direct') as EnrolledUser;
      const browser = app.client();
      const login = pageOf(await authorize(browser, requestOf()));
      const onward = new URL(login.path, app.baseUrl).searchParams.get('redirect_to') ?? '';
      await browser.logIn(key, { address: newAddress() });
      expect(pageOf(await walk(browser, onward)).page.text).toContain('FIPS-certified');
    });

    it('a touch by a key of the demanded model goes on', async () => {
      await setRule(app, application.clientId, { access: 'everyone', models: 'fips-only' });
      const browser = app.client();
      const key = app.newKey({ aaguid: FIPS_MODEL });
      await provision(organization, `fips@${DOMAIN}`);
      await browser.signIn(`fips@${DOMAIN}`);
      expect((await browser.enroll(key)).status).toBe(200);
      const end = await authorize(browser, requestOf());
      expect(clientOf(end).get('code')).not.toBeNull();
    });

    it('asks another person, who logs in for it, for a consent of their own', async () => {
      await setRule(app, application.clientId, { access: 'everyone', touchWithinSeconds: 600 });
      const browser = app.client();
      const [first, second] = [people.get('direct'), people.get('foreign')] as [
        EnrolledUser,
        EnrolledUser,
      ];
      await browser.signIn(email('direct'));
      await browser.logIn(first.key, { address: newAddress() });
      const asking = await authorize(browser, requestOf({ prompt: 'consent' }));
      await ageTouches(app, email('direct'), 700);
      const login = pageOf(await consented(browser, asking));
      const address = new URL(login.path, app.baseUrl);
      expect(address.pathname).toBe('/login');
      await browser.post('/logout', {}, { address: newAddress() });
      await browser.signIn(email('foreign'));
      await browser.logIn(second.key, { address: newAddress() });
      const onward = address.searchParams.get('redirect_to') ?? '';
      const end = pageOf(await walk(browser, onward));
      expect([end.page.status, end.page.text]).toEqual([200, expect.stringContaining('Allow')]);
      expect(clientOf(await consented(browser, end)).get('code')).not.toBeNull();
    });

    it('a person who is not assigned is never asked for a touch', async () => {
      await setRule(app, application.clientId, { access: 'assigned', touchWithinSeconds: 60 });
      await ageTouches(app, email('unassigned'), 700);
      const page = pageOf(await authorize(browserOf('unassigned'), requestOf()));
      expect([page.page.status, page.page.text]).toEqual([
        403,
        expect.stringContaining('You are not assigned'),
      ]);
    });
  });
});
