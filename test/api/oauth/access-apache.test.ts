import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  assign,
  drain,
  lastRefusal,
  newGroup,
  provision,
  setRule,
  unassign,
  type TestGroup,
} from '../../support/access-targets.js';
import { startApache, type Apache } from '../../support/apache.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { addApplication, type Application } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { freePort } from '../../support/free-port.js';
import { requires } from '../../support/programs.js';
import { count } from '../../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../../support/scim-organization.js';

const DOMAIN = 'apache.example';
const ADMITTED = ['grouped', 'direct'];

requires('apache2', 'mod_auth_openidc').describe(
  'Apache with mod_auth_openidc as an application',
  () => {
    let app: TestApp;
    let apache: Apache;
    let organization: ScimOrganization;
    let application: Application;
    let group: TestGroup;
    const people = new Map<string, EnrolledUser & { readonly id: string }>();
    const email = (name: string) => `${name}@${DOMAIN}`;
    const of = (name: string) => people.get(name) as EnrolledUser & { readonly id: string };

    beforeAll(async () => {
      app = await startTestApp();
      organization = await foundOrganization(app, DOMAIN);
      for (const name of [...ADMITTED, 'unassigned']) {
        const id = await provision(organization, email(name));
        people.set(name, { id, ...(await app.enrolled(email(name))) });
      }
      group = await newGroup(organization, 'Web masters', [of('grouped').id]);
      const port = await freePort();
      application = await addApplication(
        app,
        {
          client_name: 'Intranet',
          redirect_uris: [`http://localhost:${port}/app/callback`],
          grant_types: ['authorization_code'],
          response_types: ['code'],
          token_endpoint_auth_method: 'client_secret_basic',
        },
        { owner: `admin@${DOMAIN}` },
      );
      apache = await startApache({ issuer: app.baseUrl, ...application }, port);
    });
    afterAll(async () => {
      await apache.stop();
      await app.close();
    });

    /**
     * Opens the application in a browser, and follows the redirects through the service and back.
     */
    async function open(browser: Client): Promise<Answer & { readonly url: string }> {
      let next = `${apache.url}/app/`;
      for (let hops = 0; hops < 12; hops += 1) {
        const answer = await browser.get(next, { address: newAddress() });
        const location = answer.headers.get('location');
        if (location === null) return { ...answer, url: next };
        next = new URL(location, next).href;
      }
      throw new Error('too many redirects');
    }
    async function restrict(conditions: object = {}): Promise<void> {
      await unassign(app, application.clientId);
      await setRule(app, application.clientId, { access: 'assigned', ...conditions });
      await assign(app, application.clientId, { email: email('direct') });
      await assign(app, application.clientId, { groupId: group.id });
      await drain(app);
    }
    const tokenOf = async (browser: Client): Promise<string> => {
      const info = await browser.get(`${apache.url}/app/callback?info=json`);
      expect([info.status, info.text]).toEqual([200, expect.stringContaining('access_token')]);
      return (JSON.parse(info.text) as { access_token: string }).access_token;
    };
    const bearer = (url: string, token: string) =>
      app.client().get(url, {
        address: newAddress(),
        headers: { authorization: `Bearer ${token}`, origin: '' },
      });
    const grants = (name: string) =>
      count(app.dataSource, 'oauth_grants WHERE client_id = $1 AND user_id = $2', [
        application.clientId,
        of(name).id,
      ]);

    it.each(['everyone', 'assigned'] as const)(
      '%s: admits whom the rule admits',
      async (access) => {
        if (access === 'assigned') await restrict();
        const seen: Record<string, number> = {};
        for (const name of people.keys()) {
          const end = await open(of(name).client.copy());
          seen[name] = end.status;
          const isAtApache = end.url.startsWith(apache.url);
          expect([name, isAtApache]).toEqual([name, end.status === 200]);
        }
        const others = access === 'everyone' ? 200 : 403;
        expect(seen).toEqual({ grouped: 200, direct: 200, unassigned: others });
      },
    );

    it('brings access_denied to Apache by the way back of the page', async () => {
      await restrict();
      const browser = of('unassigned').client.copy();
      const page = await open(browser);
      expect(page.text).toContain('You are not assigned to <bdi>Intranet</bdi>');
      expect(await lastRefusal(app, email('unassigned'))).toEqual({
        target: { kind: 'application', name: 'Intranet', id: application.clientId },
        rule: 'assignment',
      });
      const { pathname } = new URL(page.url);
      const back = await browser.post(`${pathname}/deny`, {}, { address: newAddress() });
      const resumed = await browser.get(back.json.redirect_to as string, { address: newAddress() });
      const callback = resumed.headers.get('location') ?? '';
      expect(callback).toMatch(/^http:\/\/localhost:\d+\/app\/callback\?error=access_denied/);
      expect(new URL(callback).searchParams.get('state')).not.toBeNull();
      // mod_auth_openidc 2.4.12 misreads the parameter `iss` (RFC 9207) of an error response as a
      // discovery response. It shows an error page of its own, and opens no session.
      const end = await browser.get(callback);
      expect([end.status, end.text]).toEqual([
        200,
        expect.stringContaining('<title>Error</title>'),
      ]);
      expect((await open(browser)).status).toBe(403);
    });

    it('a condition that the key does not meet shows the page that names the key', async () => {
      await restrict({ models: 'fips-only' });
      const { key } = of('direct');
      const browser = app.client();
      const login = new URL((await open(browser)).url);
      expect(login.pathname).toBe('/login');
      await browser.logIn(key, { address: newAddress() });
      const page = await browser.get(login.searchParams.get('redirect_to') ?? '');
      const location = page.headers.get('location');
      const end = location === null ? page : await browser.follow(location);
      expect([end.status, end.text]).toEqual([403, expect.stringContaining('FIPS-certified')]);
    });

    it('a SCIM PATCH that removes a member ends the token at once, here and at Apache', async () => {
      await restrict();
      const browsers = { grouped: of('grouped').client.copy(), direct: of('direct').client.copy() };
      const tokens: Record<string, string> = {};
      for (const [name, browser] of Object.entries(browsers)) {
        expect((await open(browser)).text).toBe('This is app.\n');
        tokens[name] = await tokenOf(browser);
      }
      const answers = async (name: string) => [
        (await bearer(`${app.baseUrl}/oauth/userinfo`, tokens[name] ?? '')).status,
        (await bearer(`${apache.url}/api/`, tokens[name] ?? '')).status,
      ];
      expect([await answers('grouped'), await answers('direct')]).toEqual([
        [200, 200],
        [200, 200],
      ]);
      expect(await group.patch('remove', of('grouped').id)).toBeLessThan(300);
      expect(await answers('grouped')).toEqual([401, 401]);
      expect(await grants('grouped')).toBe(0);
      expect(await answers('direct')).toEqual([200, 200]);
      expect((await open(of('grouped').client.copy())).status).toBe(403);
      await group.patch('add', of('grouped').id);
    });
  },
);
