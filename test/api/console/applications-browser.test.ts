import { expect, it } from 'vitest';
import type { BrowserProfile } from '../../support/browser.js';
import { newAddress, type Client } from '../../support/client.js';
import {
  consoleSetUp,
  HOSTILE,
  KeyboardWalk,
  openAs,
  openWithoutScripts,
} from '../../support/console.js';
import { assigned } from '../../support/domains.js';
import '../../support/full-scale-only.js';
import { touchedAgo } from '../../support/keys.js';
import { checkPage, overflowing } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';
import { rows } from '../../support/rows.js';

const APPLICATIONS = '/api/v1/applications';

requires('chromium').describe('the pages of applications in Chromium', () => {
  const pages = consoleSetUp('applications');

  const api = (client: Client, method: string, path: string, body?: object) =>
    client.send(method, APPLICATIONS + path, {
      address: newAddress(),
      ...(body === undefined ? {} : { body }),
    });

  /** Registers a web application at the API. Returns its client id and secret. */
  const registered = async (client: Client, name = 'Grafana') => {
    const body = { name, type: 'web', redirect_uris: ['https://grafana.example/callback'] };
    return (await api(client, 'POST', '', body)).json as {
      client_id: string;
      client_secret: string;
    };
  };

  /**
   * Registers an application of type `service`, which gets tokens by its secret. Returns its client
   * id and secret.
   */
  const registeredService = async (client: Client) =>
    (await api(client, 'POST', '', { name: 'Robot', type: 'service', scopes: ['robots'] }))
      .json as {
      client_id: string;
      client_secret: string;
    };

  const tokenStatus = async (id: string, secret: string) => {
    const answer = await fetch(`${pages.app.baseUrl}/oauth/token`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${btoa(`${id}:${secret}`)}`,
        'x-forwarded-for': newAddress(),
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'grant_type=client_credentials&scope=robots',
    });
    return answer.status;
  };

  it('registers a service by keyboard alone at 390 px, and shows its secret once, which works', async () => {
    const admin = await pages.newAdmin();
    const { page, pageErrors } = admin.profile;
    const walk = await KeyboardWalk.begin(page, '/admin/applications');
    await walk.press('a[href="/admin/applications/new"]');
    await page.waitForURL('**/new');
    await walk.press('a[href$="type=service"]');
    await page.waitForURL('**/new?type=service');
    await walk.fill('#field-name', 'Nightly robot');
    await walk.fill('#field-scopes', 'robots').catch(async () => {
      await walk.press('details summary');
      await walk.fill('#field-scopes', 'robots');
    });
    await walk.press('form[data-secret] button');
    await page.locator('[data-result]').waitFor();
    const id = (await page.locator('#client-id').textContent()) ?? '';
    const secret = (await page.locator('[data-value]').textContent()) ?? '';
    expect(await tokenStatus(id, secret)).toBe(200);
    await walk.press('[data-onward]');
    await page.waitForURL(`**/admin/applications/${id}`);
    await page.getByRole('heading', { name: 'Nightly robot' }).waitFor();
    walk.print('register a service');
    await expectNowhere(page, secret);
    expect(pageErrors).toEqual([]);
    await admin.profile.leave();
  });

  it('approves the application of a member by keyboard at 390 px, after the touch it asks for', async () => {
    const admin = await pages.newAdmin();
    const { page, pageErrors } = admin.profile;
    const member = await pages.app.enrolled(`bob@${admin.domain}`);
    const { client_id: id } = await registered(member.client, 'Wiki of Bob');
    await touchedAgo(pages.app, admin.email, 400);
    await page.goto('/admin/applications');
    expect(await page.locator(`[data-application="${id}"]`).textContent()).toContain(
      'Not approved',
    );
    await checkPage(admin.profile, `/admin/applications/${id}`);
    const walk = await KeyboardWalk.begin(page, `/admin/applications/${id}`);
    expect(await page.locator('[data-approval="none"]').count()).toBe(1);
    expect(await page.locator('[data-open-addresses] li').allTextContents()).toEqual([
      'https://grafana.example/callback',
    ]);
    await walk.press('form[data-send$="/approve"] button');
    await page.locator('[data-approval="given"]').waitFor();
    expect(await page.locator('[data-open-addresses]').count()).toBe(0);
    const { json } = await api(admin.client, 'GET', `/${id}`);
    expect(json).toMatchObject({
      approved_redirect_uris: ['https://grafana.example/callback'],
    });
    // Chromium logs the 401 that demands a touch as an error.
    expect(pageErrors.filter((error) => !error.includes(' 401 '))).toEqual([]);
    await admin.profile.leave();
  });

  /**
   * Checks that a secret is not in the page, its URL, its history or storage, or in the log of the
   * service.
   */
  async function expectNowhere(page: BrowserProfile['page'], secret: string) {
    for (const visit of [() => page.reload(), () => page.goBack(), () => page.goForward()]) {
      await visit();
      expect(await page.content()).not.toContain(secret);
      expect(page.url()).not.toContain(secret);
    }
    const kept = 'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state])';
    expect(await page.evaluate(kept)).not.toContain(secret);
    expect(pages.app.log.join('')).not.toContain(secret);
  }

  it('has a form for every kind, and each registers an application of that kind', async () => {
    const admin = await pages.newAdmin();
    await admin.profile.leave();
    await assigned(pages.app, admin.email, admin.domain);
    const profile = await openAs(pages.browser, pages.app, admin);
    const { page } = profile;
    const values: Record<string, Record<string, string>> = {
      web: { redirect_uris: 'https://a.example/back\nhttps://b.example/back' },
      spa: { redirect_uris: 'https://spa.example/back' },
      native: { redirect_uris: 'http://127.0.0.1/back' },
      kubernetes: { resource: `https://prod.${admin.domain}` },
    };
    for (const [type, fields] of Object.entries(values)) {
      await page.goto(`/admin/applications/new?type=${type}`);
      await page.locator('#field-name').fill(`A ${type}`);
      for (const [name, text] of Object.entries(fields)) {
        await page.locator(`#field-${name}`).fill(text);
      }
      await page.getByRole('button', { name: 'Register', exact: true }).click();
      if (type === 'web') await page.locator('[data-onward]').click();
      await page.waitForURL(/applications\/[\w-]{20,}$/);
      await page.getByRole('heading', { name: `A ${type}` }).waitFor();
    }
    const { applications } = (await api(admin.client, 'GET', '')).json;
    const types = (applications as { type: string }[]).map(({ type }) => type);
    expect(types.toSorted()).toEqual(['kubernetes', 'native', 'spa', 'web']);
    await profile.leave();
  });

  it('changes an application by keyboard alone, and refuses to save over the change of another admin', async () => {
    const admin = await pages.newAdmin();
    const { page, pageErrors } = admin.profile;
    const { client_id: id } = await registered(admin.client);
    const walk = await KeyboardWalk.begin(page, `/admin/applications/${id}`);
    await walk.press('summary');
    await walk.fill('#field-name', 'Dashboards');
    await page.keyboard.press('Enter');
    await page.getByText('The registration is changed.').waitFor();
    const before = (await api(admin.client, 'GET', `/${id}`)).json;
    expect(before).toMatchObject({
      name: 'Dashboards',
      type: 'web',
      auth_method: 'client_secret_basic',
      grant_types: ['authorization_code'],
      redirect_uris: ['https://grafana.example/callback'],
      require_pkce: false,
      profile: null,
    });
    expect(pageErrors).toEqual([]);
    await api(admin.client, 'PATCH', `/${id}`, { name: 'First' });
    await page.getByText('Change the registration').click();
    await page.locator('#field-name').fill('Second');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('This was changed since you opened it.').waitFor();
    expect((await api(admin.client, 'GET', `/${id}`)).json.name).toBe('First');
    await admin.profile.leave();
  });

  it('adds a secret with an overlap and an end, asks for a touch, and ends the old one by keyboard', async () => {
    const admin = await pages.newAdmin();
    const { page } = admin.profile;
    const { client_id: id, client_secret: old } = await registeredService(admin.client);
    await touchedAgo(pages.app, admin.email, 301);
    const walk = await KeyboardWalk.begin(page, `/admin/applications/${id}`);
    await walk.fill('#secret-days', '20');
    await walk.press('form[data-secret] button');
    await page.locator('[data-result]').waitFor();
    const added = (await page.locator('[data-value]').textContent()) ?? '';
    expect([await tokenStatus(id, old), await tokenStatus(id, added)]).toEqual([200, 200]);
    await walk.press('[data-onward]');
    await page.locator('[data-ends-soon]').waitFor();
    await walk.press('tr:last-child summary');
    await walk.press('tr:last-child form button');
    await page.getByText('The secret has ended.').waitFor();
    walk.print('rotate the secret of an application');
    expect([await tokenStatus(id, old), await tokenStatus(id, added)]).toEqual([401, 200]);
    await page.goto('/admin/applications');
    await page.locator('[data-application]').getByText('Expires soon').waitFor();
    await expectNowhere(page, added);
    await admin.profile.leave();
  });

  it('says before a deletion what it ends, and afterwards what ended', async () => {
    const admin = await pages.newAdmin();
    const { page, pageErrors } = admin.profile;
    const { client_id: id, client_secret: secret } = await registeredService(admin.client);
    await tokenStatus(id, secret);
    const walk = await KeyboardWalk.begin(page, `/admin/applications/${id}`);
    expect(await page.locator('[data-ends]').textContent()).toContain('1 valid token, 1 secret');
    await walk.press('details:has(form[data-send^="DELETE"][data-next]) summary');
    await walk.press('form[data-send^="DELETE"][data-next] button');
    await page.getByText('The application is deleted. Ended: 1 token, 1 secret.').waitFor();
    expect(page.url()).toBe(`${pages.app.baseUrl}/admin/applications`);
    expect(await tokenStatus(id, secret)).toBe(401);
    expect(pageErrors).toEqual([]);
    await admin.profile.leave();
  });

  it('is accessible and small on every screen', async () => {
    const admin = await pages.newAdmin();
    const { client_id: id } = await registered(admin.client);
    await admin.profile.leave();
    const paths = ['', '/new', '/new?type=web', `/${id}`];
    for (const path of paths) {
      const profile = await openAs(pages.browser, pages.app, admin);
      await checkPage(profile, `/admin/applications${path}`, (page) =>
        page.evaluate('for (const one of document.querySelectorAll("details")) one.open = true'),
      );
      expect(profile.pageErrors).toEqual([]);
      await profile.leave();
    }
  });

  it('shows everything without JavaScript, and pages through more than 100 applications', async () => {
    const admin = await pages.newAdmin();
    await admin.profile.leave();
    await rows(
      pages.app.dataSource,
      `INSERT INTO oauth_clients (id, kind, metadata, owner_id, org_id)
       SELECT 'app-' || lpad(n::text, 4, '0'), 'application', '{"client_name": "Many"}', u.id, u.org_id
       FROM users u, generate_series(1, 101) n WHERE u.email = $1`,
      [admin.email],
    );
    const page = await openWithoutScripts(pages.browser, pages.app, admin.client);
    await page.goto('/admin/applications');
    expect(await page.locator('[data-application]').count()).toBe(100);
    await page.getByRole('link', { name: 'Next page' }).click();
    expect(await page.locator('[data-application]').count()).toBe(1);
    await page.locator('[data-application] a').click();
    await page.getByRole('heading', { name: 'Many' }).waitFor();
    expect(await page.locator('noscript').textContent()).toContain('needs JavaScript');
    await page.context().close();
  });

  it('shows hostile names as text, and no name breaks the layout at 320 px', async () => {
    const admin = await pages.newAdmin();
    const { page, pageErrors } = admin.profile;
    const { client_id: id } = await registered(admin.client);
    await rows(
      pages.app.dataSource,
      `UPDATE oauth_clients SET metadata = metadata || jsonb_build_object('client_name', $2::text) WHERE id = $1`,
      [id, HOSTILE],
    );
    await page.setViewportSize({ width: 320, height: 640 });
    for (const path of ['/admin/applications', `/admin/applications/${id}`]) {
      await page.goto(path);
      expect(await page.getByText('<img src=x').count()).toBeGreaterThan(0);
      expect(await page.locator('main img').count()).toBe(0);
      expect(await overflowing(page)).toEqual([]);
    }
    expect(pageErrors).toEqual([]);
    await admin.profile.leave();
  });
});
