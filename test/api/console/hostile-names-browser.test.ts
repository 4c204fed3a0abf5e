import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { openProfile, startBrowser, type BrowserProfile } from '../../support/browser.js';
import { newAddress } from '../../support/client.js';
import { HOSTILE, openAs } from '../../support/console.js';
import '../../support/full-scale-only.js';
import { keysOf } from '../../support/keys.js';
import { assigned } from '../../support/domains.js';
import { CALLBACK, authorize, newPkce, postForm } from '../../support/oauth-flow.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { overflowing } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';
import { rows } from '../../support/rows.js';

const ADMIN = 'ada@hostile-names.example';
const MEMBER = 'bob@hostile-names.example';
/** The identity provider sends the hostile text as the name of this user. */
const CLAIMED = 'mallory@hostile-names.example';
/** The identity provider sends for this user an e-mail address that is not valid. */
const MISNAMED = 'eve@hostile-names.example';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
/** The beginning of the hostile text. A page is searched for it. */
const MARK = '<img src=x';
/** The part of the hostile text that is short enough for the text attributes of SCIM. */
const SHORT = HOSTILE.slice(0, 500);
/**
 * The longest e-mail address without a place for a line break. The syntax of addresses allows
 * neither markup nor a change of text direction.
 */
const LONG_DOMAIN = `${'d'.repeat(60)}.${'e'.repeat(60)}.example`;
const LONG_ADDRESS = `${'w'.repeat(64)}@${LONG_DOMAIN}`;

type Statement = readonly [sql: string, ...parameters: string[]];

/**
 * A name that a user, an application or a provider chooses. The files of other pages test more: the
 * owner at GitHub (`github-browser`), the issuer and tenant of a provider (`settings-browser`), the
 * label of an issuer (`issuer-browser`), each column of the audit log (`audit-browser`), the
 * targets of credentials (`account-browser`), and the targets that a user reaches
 * (`launcher-browser`).
 */
interface Name {
  /**
   * Sends a text to the route by which this name enters the service.
   *
   * @returns the status
   */
  readonly enter?: (text: string) => Promise<number>;
  /**
   * The status for the hostile text and, if only its length is refused, the status for its first
   * characters.
   */
  readonly answers?: readonly [hostile: number, short?: number];
  /**
   * Stores the text by SQL if the route refuses or cuts it, because an earlier version may have
   * accepted it.
   */
  readonly store?: Statement;
  /** The pages that show the name: paths, or functions that open the page. */
  readonly pages: readonly (string | ((page: Page) => Promise<unknown>))[];
  readonly user?: 'ada' | 'bob' | 'mallory' | 'stranger';
  /** The text that the pages show, if it is not the hostile text. */
  readonly text?: string;
}

requires('chromium').describe('a hostile name in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let token: string;
  const users: Record<string, EnrolledUser> = {};
  const ids: Record<string, string> = {};

  beforeAll(async () => {
    app = await startTestApp({
      claims: (email) =>
        email === CLAIMED
          ? { name: HOSTILE }
          : email === MISNAMED
            ? { email: `"${SHORT}"@hostile-names.example` }
            : {},
    });
    users['ada'] = await app.enrolled(ADMIN);
    users['bob'] = await app.enrolled(MEMBER);
    users['mallory'] = await app.enrolled(CLAIMED);
    ids['bob'] = await idOf(app, MEMBER);
    ids['mallory'] = await idOf(app, CLAIMED);
    ids['key'] = (await keysOf(app, MEMBER))[0]?.id ?? '';
    await makeApplications();
    token = (await orgApi(ada(), 'POST', '/scim-tokens', { description: 'Okta' })).json.token;
    await orgApi(ada(), 'PATCH', '', { membership: 'open' });
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  const profiles = new Map<string, BrowserProfile>();
  const clientOf = (name: string) => {
    const user = users[name];
    if (!user) throw new Error(`there is no ${name}`);
    return user.client;
  };
  const ada = () => clientOf('ada');
  const statusOf = async (path: string, body: object, name = 'ada') =>
    (await clientOf(name).post(path, body, { address: newAddress() })).status;
  const scim = async (path: string, body: object) =>
    (
      await app.client().post(`/scim/v2${path}`, body, {
        address: newAddress(),
        headers: { authorization: `Bearer ${token}`, origin: '' },
      })
    ).status;

  let addresses = 0;
  const newAddressOf = (part: string) => `${part}${(addresses += 1)}@hostile-names.example`;

  async function makeApplications(): Promise<void> {
    const shared = { token_endpoint_auth_method: 'none', client_name: 'Good' };
    const web = { ...shared, redirect_uris: [CALLBACK], response_types: ['code'] };
    const device = {
      ...shared,
      redirect_uris: [],
      response_types: [],
      grant_types: [DEVICE_GRANT],
    };
    ids['dynamic'] = (await addApplication(app, web, { kind: 'dynamic' })).clientId;
    ids['application'] = (await addApplication(app, web, { owner: MEMBER })).clientId;
    ids['television'] = (await addApplication(app, device, { owner: MEMBER })).clientId;
    await authorize(clientOf('bob'), requestOf('application'));
    await assigned(app, ADMIN, 'k8s.example');
    const cluster = { type: 'kubernetes', name: 'Prod', resource: 'https://prod.k8s.example' };
    const made = await ada().post('/api/v1/applications', cluster, { address: newAddress() });
    ids['cluster'] = made.json.client_id as string;
  }

  const requestOf = (client: string) => ({
    client_id: ids[client] ?? '',
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid email',
    code_challenge: newPkce().challenge,
    code_challenge_method: 'S256',
  });
  const authorizing = (client: string) => (page: Page) =>
    page.goto(`/oauth/authorize?${new URLSearchParams(requestOf(client)).toString()}`);
  const loggingOut = (client: string) => (page: Page) =>
    page.goto(`/oauth/logout?client_id=${ids[client]}`);

  /** Returns a function that opens the page on which a user approves a device for a client. */
  const approving = (client: string) => async (page: Page) => {
    const fields = { client_id: ids[client] ?? client, scope: 'openid' };
    const asked = await postForm(app, '/oauth/device', fields);
    await page.goto(`/device?user_code=${asked.json.user_code}`);
    await page.locator('form[action="/device"] button, form button[type=submit]').last().click();
    await page.getByText('Approve a device?').waitFor();
  };

  /**
   * Opens the audit log, checks that it shows the name as text, and opens the page of the newest
   * event.
   */
  const inAudit = async (page: Page) => {
    await page.goto('/admin/audit');
    await expectText(page, MARK, '/admin/audit');
    await page.locator('[data-events] summary').first().click();
    await page.locator('[data-events] a').first().click();
    await page.waitForURL(/\/admin\/audit\/[\da-f-]{36}$/);
  };

  /** Returns the SQL that sets a column to the hostile text in the row with an id. */
  const column = (table: string, name: string, id: string): Statement => [
    `UPDATE ${table} SET ${name} = $1 WHERE id = $2`,
    HOSTILE,
    id,
  ];
  const metadata = (client: string, value: string): Statement => [
    `UPDATE oauth_clients SET metadata = metadata || jsonb_build_object('client_name', $1::text) WHERE id = $2`,
    value,
    ids[client] ?? '',
  ];

  const OWN_PAGES = ['/', '/account', '/account/keys', '/account/sessions', '/account/activity'];

  const NAMES: Readonly<Record<string, () => Name>> = {
    'of a user, by SCIM': () => ({
      enter: (displayName) => scim('/Users', { userName: newAddressOf('w'), displayName }),
      answers: [400, 201],
      pages: ['/admin/members?q=w2@hostile-names.example'],
    }),
    'of a user, as the admin sees it': () => ({
      enter: (givenName) => scim('/Users', { userName: newAddressOf('v'), name: { givenName } }),
      answers: [201],
      store: column('users', 'name', ids['bob'] ?? ''),
      pages: [`/admin/members/${ids['bob']}`, '/admin/members?q=v3@hostile-names.example'],
    }),
    'of a user, on the own pages': () => ({
      enter: async () => (await clientOf('bob').get('/account')).status,
      answers: [200],
      store: column('users', 'name', ids['bob'] ?? ''),
      user: 'bob',
      pages: [...OWN_PAGES, '/login', '/docs/api'],
    }),
    'of a user, by a claim of the provider': () => ({
      enter: async () => (await app.client().signIn(CLAIMED)).status,
      answers: [200],
      user: 'mallory',
      pages: OWN_PAGES,
    }),
    'of a user, as a userName of SCIM': () => ({
      enter: (userName) => scim('/Users', { userName, displayName: SHORT }),
      // not an e-mail address, so that SCIM creates the user but the user cannot sign in
      answers: [400, 201],
      pages: [`/admin/members?q=${encodeURIComponent('<img')}`, '/admin/members'],
    }),
    'of a user, in an address': () => ({
      enter: async () => (await app.client().signIn(MISNAMED)).status,
      answers: [403],
      store: ['UPDATE users SET email = $1 WHERE id = $2', LONG_ADDRESS, ids['mallory'] ?? ''],
      user: 'mallory',
      text: LONG_ADDRESS,
      pages: ['/', '/account', '/login'],
    }),
    'of an address, as the admin sees it': () => ({
      enter: () => scim('/Users', { userName: `${'x'.repeat(255)}@${LONG_DOMAIN}` }),
      answers: [201],
      store: ['UPDATE users SET email = $1 WHERE id = $2', LONG_ADDRESS, ids['mallory'] ?? ''],
      text: LONG_ADDRESS,
      pages: [`/admin/members/${ids['mallory']}`, '/admin/members?q=wwww'],
    }),
    'of a key': () => ({
      enter: async () =>
        (
          await clientOf('bob').send('PATCH', `/v1/keys/${ids['key']}`, {
            address: newAddress(),
            body: { name: HOSTILE },
          })
        ).status,
      answers: [400],
      store: column('authenticators', 'name', ids['key'] ?? ''),
      user: 'bob',
      pages: ['/account/keys'],
    }),
    'of a key, as the admin sees it': () => ({
      enter: () => statusOf('/v1/keys/register/complete', { state: 'x', name: HOSTILE }, 'bob'),
      answers: [400],
      store: column('authenticators', 'name', ids['key'] ?? ''),
      pages: [`/admin/members/${ids['bob']}`],
    }),
    'of a browser': () => ({
      enter: async () =>
        (
          await clientOf('bob').post(
            '/logout',
            {},
            {
              address: newAddress(),
              headers: {
                'user-agent': `${MARK} onerror=alert(1)>${'W'.repeat(10_000)}`,
                origin: '',
              },
            },
          )
        ).status,
      answers: [403], // refused, but the log has the first 512 characters
      store: ['UPDATE sessions SET user_agent = $1 WHERE user_id = $2', HOSTILE, ids['bob'] ?? ''],
      user: 'bob',
      pages: ['/account/sessions'],
    }),
    'of a browser, as the admin sees it': () => ({
      store: ['UPDATE sessions SET user_agent = $1 WHERE user_id = $2', HOSTILE, ids['bob'] ?? ''],
      pages: [`/admin/members/${ids['bob']}`],
    }),
    'of an application': () => ({
      enter: () =>
        statusOf('/api/v1/applications', { name: HOSTILE, type: 'spa', redirect_uris: [CALLBACK] }),
      answers: [400],
      store: metadata('application', HOSTILE),
      pages: ['/admin/applications', `/admin/applications/${ids['application']}`],
    }),
    'of an application, to its user': () => ({
      enter: () => statusOf('/oauth/register', { client_name: HOSTILE, redirect_uris: [CALLBACK] }),
      answers: [400],
      store: metadata('application', HOSTILE),
      user: 'bob',
      pages: ['/account/applications', loggingOut('application')],
    }),
    'of an application that asks for consent': () => ({
      enter: () =>
        statusOf('/oauth/register', {
          client_name: 'Logo',
          redirect_uris: [CALLBACK],
          token_endpoint_auth_method: 'client_secret_post',
          logo_uri: `https://evil.example/${encodeURIComponent(MARK)}`,
          client_uri: 'https://evil.example/',
        }),
      answers: [201], // no page shows the logo or the URI of the client
      store: metadata('dynamic', HOSTILE),
      user: 'bob',
      pages: [authorizing('dynamic')],
    }),
    'of an application, before the login': () => ({
      enter: () => statusOf('/oauth/register', { client_name: HOSTILE, redirect_uris: [CALLBACK] }),
      answers: [400],
      store: metadata('application', HOSTILE),
      user: 'stranger',
      pages: [authorizing('application')],
    }),
    'of an application on a device': () => ({
      enter: () => statusOf('/api/v1/applications', { name: HOSTILE, type: 'native' }),
      answers: [400],
      store: metadata('television', HOSTILE),
      user: 'bob',
      pages: [approving('television')],
    }),
    'of the address of an application': () => ({
      enter: () =>
        statusOf('/api/v1/applications', { name: 'x', type: 'web', redirect_uris: [HOSTILE] }),
      answers: [400],
      store: [
        `UPDATE oauth_clients SET metadata = metadata || jsonb_build_object('redirect_uris', jsonb_build_array($1::text)) WHERE id = $2`,
        `https://${LONG_DOMAIN}/${'w'.repeat(2000)}`,
        ids['application'] ?? '',
      ],
      user: 'bob',
      text: LONG_DOMAIN,
      pages: ['/account/applications'],
    }),
    'of a cluster': () => ({
      enter: () =>
        statusOf('/api/v1/applications', {
          name: HOSTILE,
          type: 'kubernetes',
          resource: 'https://second.k8s.example',
        }),
      answers: [400],
      store: metadata('cluster', HOSTILE),
      pages: [`/admin/applications/${ids['cluster']}`, '/admin/applications'],
    }),
    'of a group': () => ({
      enter: (displayName) => scim('/Groups', { displayName }),
      answers: [400, 201],
      pages: [inAudit],
    }),
    'of a SCIM token': () => ({
      enter: () => statusOf('/api/v1/org/scim-tokens', { description: HOSTILE }),
      answers: [400],
      store: ['UPDATE scim_tokens SET description = $1', HOSTILE],
      pages: ['/admin/scim-tokens'],
    }),
    'of an API token': () => ({
      enter: () => statusOf('/api/v1/org/api-tokens', { name: HOSTILE, scopes: ['audit:read'] }),
      answers: [400],
      store: [
        `INSERT INTO api_tokens (id, org_id, hash, name, scopes, scim_token_ids, allowed_cidrs, lifetime_days, created_by, expires_at)
         SELECT gen_random_uuid(), org_id, 'x', $1, '{audit:read}', '{}', '{}', 90, id, now() + interval '1 day'
         FROM users WHERE email = $2`,
        HOSTILE,
        ADMIN,
      ],
      pages: ['/admin/api-tokens'],
    }),
    'of an event receiver': () => ({
      enter: () =>
        statusOf('/api/v1/org/event-receivers', {
          name: HOSTILE,
          kind: 'otlp',
          url: 'http://127.0.0.1:9/',
        }),
      answers: [400],
      store: [
        `INSERT INTO event_receivers (id, org_id, kind, name, url, status, created_by, address_by, epoch, xid, event_id)
         SELECT gen_random_uuid(), org_id, 'otlp', $1, 'https://siem.example/', 'paused', id, id, 0, '0', id
         FROM users WHERE email = $2`,
        HOSTILE,
        ADMIN,
      ],
      pages: ['/admin/event-receivers'],
    }),
    'of a question to the audit log': () => ({
      enter: () => statusOf('/api/v1/org/audit-questions', { name: HOSTILE, person: 'bob' }),
      answers: [400],
      store: [
        `INSERT INTO saved_questions (id, org_id, name, filters, created_by)
         SELECT gen_random_uuid(), org_id, $1, '{"person": "bob"}', id FROM users WHERE email = $2`,
        HOSTILE,
        ADMIN,
      ],
      pages: ['/admin/audit', '/admin/audit/questions'],
    }),
    'of a domain': () => ({
      enter: () => statusOf('/api/v1/org/domains', { domain: HOSTILE }),
      answers: [400],
      store: [
        `INSERT INTO organization_domains (org_id, domain) SELECT org_id, $1 FROM users WHERE email = $2`,
        LONG_DOMAIN,
        ADMIN,
      ],
      text: LONG_DOMAIN,
      pages: ['/admin/domains', `/admin/domains/${LONG_DOMAIN}`],
    }),
    'of an organization': () => ({
      enter: async () => (await orgApi(ada(), 'PATCH', '', { name: HOSTILE })).status,
      answers: [400],
      store: [
        'UPDATE organizations SET name = $1 WHERE id = (SELECT org_id FROM users WHERE email = $2)',
        HOSTILE,
        ADMIN,
      ],
      pages: ['/admin/settings'],
    }),
  };

  it.each(Object.keys(NAMES))(
    'is shown as text, mixes with no other text and breaks no layout at 320 px: %s',
    async (title) => {
      const name = NAMES[title]?.();
      if (!name) throw new Error(`there is no name ${title}`);
      for (const [n, answer] of (name.answers ?? []).entries()) {
        expect(await name.enter?.(n === 0 ? HOSTILE : SHORT)).toBe(answer);
      }
      if (name.store) await rows(app.dataSource, name.store[0], name.store.slice(1));
      const profile = await profileOf(name.user ?? 'ada');
      const { page, pageErrors } = profile;
      await profile.move();
      for (const step of name.pages) {
        if (typeof step === 'string') expect((await page.goto(step))?.status(), step).toBe(200);
        else await step(page);
        const where = `${title}: ${page.url()}`;
        await page.evaluate(
          'for (const one of document.querySelectorAll("details")) one.open = true',
        );
        await expectText(page, name.text ?? MARK, where);
      }
      expect(pageErrors).toEqual([]);
    },
  );

  /**
   * Returns the browser profile of a user, which is opened once, and sets its window to 320 pixels
   * wide.
   */
  async function profileOf(user: string): Promise<BrowserProfile> {
    const known = users[user];
    const profile =
      profiles.get(user) ??
      (known ? await openAs(browser, app, known) : await openProfile(browser, app.baseUrl));
    profiles.set(user, profile);
    await profile.page.setViewportSize({ width: 320, height: 640 });
    return profile;
  }

  /**
   * Checks that a page shows a name as text, each time in an element that isolates its text
   * direction, and does not overflow its width.
   */
  async function expectText(page: Page, name: string, where: string): Promise<void> {
    expect(await page.locator('img[src="x"], img[onerror]').count(), where).toBe(0);
    expect(await overflowing(page), where).toEqual([]);
    const shown = await page.evaluate<{ count: number; mixed: string[] }>(
      `(${FIND_NAME})(${JSON.stringify(name)})`,
    );
    expect(shown.mixed, where).toEqual([]);
    expect(shown.count, where).toBeGreaterThan(0);
  }
});

/**
 * A function that runs in the page: it counts where a name is shown, and returns those places that
 * have other text beside the name without isolation.
 */
const FIND_NAME = `(name) => {
  const mixed = [];
  let count = 0;
  for (const field of document.querySelectorAll('input:not([type=hidden]), textarea')) {
    if (field.value.includes(name)) count += 1;
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const text = node.textContent.trim();
    if (!text.includes(name) || node.parentElement.closest('textarea, option, script')) continue;
    count += 1;
    const isolates = (element) => /isolate|plaintext/.test(getComputedStyle(element).unicodeBidi);
    let element = node.parentElement;
    while (element && !isolates(element)) element = element.parentElement;
    const isAlone = element && element.textContent.trim() === text;
    if (!isAlone || !text.startsWith(name)) mixed.push(node.parentElement.outerHTML.slice(0, 200));
  }
  return { count, mixed };
}`;
