import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { openProfile, startBrowser, type BrowserProfile } from '../../support/browser.js';
import { newAddress } from '../../support/client.js';
import { HOSTILE } from '../../support/console.js';
import { assigned } from '../../support/domains.js';
import '../../support/full-scale-only.js';
import { idOf } from '../../support/org-api.js';
import { checkPage, overflowing, tabTo } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';
import { rows } from '../../support/rows.js';
import { addInstallation, addTarget, assignTo } from '../../support/targets.js';

const ADMIN = 'ada@launcher.example';
const MEMBER = 'bob@launcher.example';
const STRANGER = 'eve@elsewhere.example';
const ROLE = 'arn:aws:iam::123456789012:role/engineer';
const START = 'https://grafana.launcher.example/login';
const GROUP = 'Zebra on-call';

requires('chromium').describe('the start page as a launcher, in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let visitor: BrowserProfile;
  let page: Page;
  let ada: EnrolledUser;
  let bob: EnrolledUser;
  let eve: EnrolledUser;
  const groupId = randomUUID();
  const run = (query: string, ...parameters: unknown[]) => rows(app.dataSource, query, parameters);
  const enter = ({ client }: EnrolledUser) =>
    page
      .context()
      .addCookies([
        { name: 'svc_session', value: client.cookie('svc_session') ?? '', url: app.baseUrl },
      ]);
  const register = async (body: object) => {
    const made = await ada.client.post('/api/v1/applications', body, { address: newAddress() });
    if (made.status !== 201) throw new Error(made.text);
  };

  beforeAll(async () => {
    app = await startTestApp();
    ada = await app.enrolled(ADMIN);
    bob = await app.enrolled(MEMBER);
    eve = await app.enrolled(STRANGER);
    const bobId = await idOf(app, MEMBER);
    await run(
      'INSERT INTO groups (id, org_id, display_name) SELECT $1, org_id, $2 FROM users WHERE id = $3',
      groupId,
      GROUP,
      bobId,
    );
    await run('INSERT INTO group_members (group_id, user_id) VALUES ($1, $2)', groupId, bobId);
    const hosts = {
      name: 'prod',
      hosts: ['*.prod.launcher.example'],
      logins: ['deploy', 'ubuntu'],
    };
    const prod = await addTarget(app.dataSource, ADMIN, hosts);
    await assignTo(app.dataSource, prod, { groups: [groupId] });
    await run(
      `UPDATE access_targets SET touch_within_seconds = 900, models = 'fips-only' WHERE id = $1`,
      prod,
    );
    const role = await addTarget(app.dataSource, ADMIN, { name: 'Engineer', roleArn: ROLE });
    await assignTo(app.dataSource, role, { users: [bobId] });
    await addInstallation(app.dataSource, ADMIN, 'launcher-org');
    await assigned(app, ADMIN, 'k8s.launcher.example');
    const cluster = { name: 'Prod', type: 'kubernetes', resource: 'https://k8s.launcher.example' };
    await register(cluster);
    const web = { type: 'web', redirect_uris: ['https://grafana.launcher.example/callback'] };
    await register({ ...web, name: 'Grafana', initiate_login_uri: START });
    await register({ ...web, name: 'Wiki' });
    browser = await startBrowser();
    visitor = await openProfile(browser, app.baseUrl);
    ({ page } = visitor);
  });
  afterAll(async () => {
    await visitor.leave();
    await browser.close();
    await app.close();
  });

  it('is accessible, fits each screen, and loads little, as the page of the reach does', async () => {
    await enter(bob);
    await checkPage(visitor, '/');
    await checkPage(visitor, '/account/reach');
    await enter(eve);
    await checkPage(visitor, '/');
    await checkPage(visitor, '/account/reach');
    expect(visitor.pageErrors).toEqual([]);
  });

  it('shows the applications, hosts, roles, clusters and owners, and the time until the end', async () => {
    await enter(bob);
    await page.goto('/');
    expect(await page.getByRole('link', { name: 'Grafana' }).getAttribute('href')).toBe(START);
    expect(await page.getByRole('link', { name: 'Wiki' }).count()).toBe(0);
    const text = await page.locator('main').textContent();
    for (const shown of ['Wiki', '*.prod.launcher.example', 'as deploy or ubuntu', 'Engineer']) {
      expect(text).toContain(shown);
    }
    for (const shown of [ROLE, 'https://k8s.launcher.example', 'launcher-org']) {
      expect(text).toContain(shown);
    }
    expect(await page.locator('[data-left]').textContent()).toMatch(/^[78] h(?: \d{1,2} min)?$/);
  });

  it('opens an application by the keyboard alone', async () => {
    await enter(bob);
    await page.goto('/');
    const requested = page.waitForRequest((request) => request.url() === START);
    await page.route(START, (route) => route.fulfill({ status: 200, body: 'Grafana' }));
    const [request] = await Promise.all([
      requested,
      tabTo(page, `a[href="${START}"]`).then(() => page.keyboard.press('Enter')),
    ]);
    const headers = await request.allHeaders();
    expect(headers['referer']).toBeUndefined();
    await page.unroute(START);
  });

  it('says on the page of the reach why and by which conditions, and names no group', async () => {
    await enter(bob);
    await page.goto('/account/reach');
    const row = (name: string) => page.getByRole('row').filter({ hasText: name });
    const prod = await row('*.prod.launcher.example').textContent();
    expect(prod).toContain('a group that you are in is assigned');
    expect(prod).toContain('a touch of your key in the last 15 minutes');
    expect(prod).toContain('FIPS 140');
    expect(await row('Engineer').textContent()).toContain('an admin assigned you');
    expect(await row('launcher-org').textContent()).toContain('everyone in your organization may');
    for (const path of ['/', '/account', '/account/reach']) {
      await page.goto(path);
      const source = await page.content();
      for (const secret of [GROUP, groupId]) expect(source, path).not.toContain(secret);
    }
  });

  it('shows another organization nothing, and a person who is not assigned less', async () => {
    await enter(eve);
    for (const path of ['/', '/account/reach']) {
      await page.goto(path);
      const text = (await page.content()).replaceAll(STRANGER, '');
      for (const one of ['Grafana', 'launcher', 'Engineer', ROLE]) expect(text).not.toContain(one);
    }
    await enter(ada);
    await page.goto('/account/reach');
    const text = await page.locator('main').textContent();
    expect(text).toContain('launcher-org');
    for (const one of ['*.prod', 'Engineer']) expect(text).not.toContain(one);
  });

  it('shows 24 targets of a kind and the number of further ones, in less than 60 KB', async () => {
    await run(
      `INSERT INTO access_targets (org_id, kind, name, hosts, logins)
       SELECT org_id, 'host_group', 'many-' || n, ARRAY['h' || n || '.example'], '{root}'
       FROM users, generate_series(1, 900) n WHERE email = $1`,
      STRANGER,
    );
    await enter(eve);
    await checkPage(visitor, '/');
    expect(await page.locator('[aria-labelledby=hosts] li').count()).toBe(24);
    await page.getByRole('link', { name: '876 more' }).click();
    await page.waitForURL('/account/reach');
    expect(await page.getByRole('row').count()).toBe(901);
    await run("DELETE FROM access_targets WHERE name LIKE 'many-%'");
  });

  it('shows hostile names as text: nothing runs, nothing is loaded, nothing scrolls sideways', async () => {
    await run(
      `UPDATE access_targets SET name = $1, hosts = ARRAY[$1], logins = ARRAY[$1] WHERE kind = 'host_group'`,
      HOSTILE,
    );
    await run(`UPDATE access_targets SET name = $1, region = $1 WHERE kind = 'aws_role'`, HOSTILE);
    await run('UPDATE github_installations SET owner = $1', HOSTILE);
    await run(
      `UPDATE oauth_clients SET metadata = metadata || jsonb_build_object('client_name', $1::text)
       WHERE kind = 'kubernetes'`,
      HOSTILE,
    );
    await run(
      `UPDATE oauth_clients SET approved_uris = ARRAY['javascript:alert(1)'],
         metadata = metadata || jsonb_build_object('client_name', $1::text, 'initiate_login_uri', 'javascript:alert(1)')
       WHERE kind = 'application'`,
      HOSTILE,
    );
    await enter(bob);
    let dialogs = 0;
    page.on('dialog', (dialog) => void dialog.dismiss().then(() => (dialogs += 1)));
    for (const path of ['/', '/account/reach']) {
      for (const width of [320, 390, 1280]) {
        await page.setViewportSize({ width, height: 800 });
        await page.goto(path);
        expect(await overflowing(page), `${path}, ${width}`).toEqual([]);
      }
      expect(await page.locator('main img, main script').count()).toBe(0);
      expect(await page.locator('main a[href^="javascript"]').count()).toBe(0);
    }
    expect(dialogs).toBe(0);
    expect(visitor.pageErrors).toEqual([]);
  });
});
