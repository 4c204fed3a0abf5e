import { afterAll, beforeAll, expect, it } from 'vitest';
import { CleanUp } from '../../src/domain/admin/clean-up/clean-up.service.js';
import { provision } from '../support/access-targets.js';
import { startApache, type Apache } from '../support/apache.js';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Client } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import { requires } from '../support/programs.js';
import { count, rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { noticesAbout, registerApplication } from '../support/signed-in-application.js';

const DOMAIN = 'leaving-apache.example';
const LOGOUT = '/app/callback?logout=backchannel';
const HOURS = 9;
const WEEK = 7 * 24 * 3600;

/**
 * The settings of an application at Apache: its sessions last a week, and it accepts logout tokens.
 */
const SETTINGS = [
  'OIDCProviderBackChannelLogoutSupported On',
  'OIDCSessionType server-cache',
  'OIDCCacheType shm',
  `OIDCSessionMaxDuration ${WEEK}`,
  `OIDCSessionInactivityTimeout ${WEEK}`,
  'OIDCInfoHook exp timeout',
];

/** A person who is signed in at Apache. */
interface Person {
  readonly id: string;
  readonly browser: Client;
}

requires('apache2', 'mod_auth_openidc').describe('Apache with mod_auth_openidc', () => {
  let app: TestApp;
  let apache: Apache;
  let organization: ScimOrganization;
  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_CLEANUP_INTERVAL: '0' } });
    organization = await foundOrganization(app, DOMAIN);
    const port = await freePort();
    const origin = `http://localhost:${port}`;
    const application = await registerApplication(organization.admin.client, {
      name: 'Intranet',
      redirect_uris: [`${origin}/app/callback`],
      auth_method: 'client_secret_basic',
      backchannel_logout_uri: `${origin}${LOGOUT}`,
    });
    apache = await startApache({ issuer: app.baseUrl, ...application }, port, SETTINGS);
  });
  afterAll(async () => {
    await apache.stop();
    await app.close();
  });

  const open = (browser: Client) => browser.get(`${apache.url}/app/`);
  /** Provisions a user by SCIM, enrolls a key, and signs in to Apache through the service. */
  async function signedIn(name: string): Promise<Person> {
    const email = `${name}@${DOMAIN}`;
    const id = await provision(organization, email);
    const { client: browser } = await app.enrolled(email);
    const { url, text } = await browser.follow(`${apache.url}/app/`);
    expect([url.href, text]).toEqual([`${apache.url}/app/`, 'This is app.\n']);
    return { id, browser };
  }
  /** Returns the seconds until Apache ends its session: in any case, and if no request comes. */
  async function secondsLeft({ browser }: Person): Promise<number[]> {
    const { json } = await browser.get(`${apache.url}/app/callback?info=json`);
    const { exp, timeout } = json as { exp: number; timeout: number };
    return [exp, timeout].map((time) => time - Date.now() / 1000);
  }
  /**
   * Makes everything that the service recorded about sign-ins nine hours older, and runs the
   * clean-up. The service's clock stays, because Apache refuses a logout token whose `iat` is ten
   * minutes off. So the session at Apache gets no older. `secondsLeft` shows that it would outlast
   * the nine hours.
   */
  async function passHours(): Promise<void> {
    const older = `make_interval(hours => ${HOURS})`;
    const columns = {
      sessions: ['created_at', 'auth_time', 'expires_at'],
      oauth_grants: ['created_at', 'expires_at'],
      oauth_artifacts: ['created_at', 'consumed_at', 'expires_at'],
      client_sign_ins: ['last_at'],
    };
    for (const [table, names] of Object.entries(columns)) {
      const changes = names.map((name) => `${name} = ${name} - ${older}`).join(', ');
      await rows(app.dataSource, `UPDATE ${table} SET ${changes}`);
    }
    await app.nest.get(CleanUp, { strict: false }).run();
  }
  const logouts = () => apache.answered().filter((line) => line.startsWith(`POST ${LOGOUT}`));

  it('ends its session of a person whom SCIM removes nine hours after the sign-in', async () => {
    const [leaver, colleague] = [await signedIn('bob'), await signedIn('eve')];
    for (const person of [leaver, colleague]) {
      for (const seconds of await secondsLeft(person)) expect(seconds).toBeGreaterThan(WEEK - 600);
    }
    await passHours();
    for (const table of ['sessions', 'oauth_grants']) {
      const left = await count(app.dataSource, `${table} WHERE user_id IN ($1, $2)`, [
        leaver.id,
        colleague.id,
      ]);
      expect([table, left]).toEqual([table, 0]);
    }
    for (const { browser } of [leaver, colleague]) {
      expect((await open(browser)).text).toBe('This is app.\n');
    }
    expect([await noticesAbout(app, leaver.id), logouts()]).toEqual([[], []]);

    expect((await organization.scim('DELETE', `/Users/${leaver.id}`)).status).toBe(204);
    await expect.poll(() => noticesAbout(app, leaver.id), { timeout: 90_000 }).toEqual([]);
    // The service sends one token that names the session, and one that names only the user. Apache
    // accepts both at once, and finds its session by the `sid` of the first.
    await expect.poll(logouts).toEqual([`POST ${LOGOUT} 200`, `POST ${LOGOUT} 200`]);
    const refused = await open(leaver.browser);
    expect(refused.status).toBe(302);
    const login = await leaver.browser.follow(refused.headers.get('location') ?? '');
    expect([login.url.origin, login.url.pathname]).toEqual([app.baseUrl, '/login']);
    expect((await open(colleague.browser)).text).toBe('This is app.\n');
  });
});
