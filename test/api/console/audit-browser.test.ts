import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { openProfile, startBrowser, type BrowserProfile } from '../../support/browser.js';
import '../../support/full-scale-only.js';
import { addMember, orgApi } from '../../support/org-api.js';
import { checkPage, overflowing, tabTo } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';
import { rows } from '../../support/rows.js';

const DAY = 86_400_000;
const PHONE = { width: 390, height: 844 };
const HOSTILE = [
  '<img src=x onerror="document.title=1"><script>document.title=2</script>',
  '\u202Egnp.exe\u2066\u2067',
  'x'.repeat(10_000),
  '"><a href="https://evil.example">click</a>',
];

requires('chromium').describe('the audit log in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let profile: BrowserProfile;
  let page: Page;
  let ada: EnrolledUser;
  let org: string;
  beforeAll(async () => {
    app = await startTestApp();
    browser = await startBrowser();
    ada = await app.enrolled('ada@audit-browser.example');
    const [row] = await rows<{ org_id: string }>(
      app.dataSource,
      "SELECT org_id FROM users WHERE email = 'ada@audit-browser.example'",
    );
    org = row?.org_id ?? '';
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });
  beforeEach(async () => {
    profile = await openProfile(browser, app.baseUrl);
    ({ page } = profile);
    await page.context().addCookies([sessionOf(ada)]);
  });
  afterEach(() => profile.leave());

  const sessionOf = ({ client }: EnrolledUser) => ({
    name: 'svc_session',
    value: client.cookie('svc_session') ?? '',
    url: app.baseUrl,
  });
  const eventTexts = () => page.locator('[data-events] li').allInnerTexts();

  /**
   * Inserts an audit event about a member, with a time and, if there is one, the name of an
   * application.
   */
  const write = (
    type: string,
    subject: string,
    at: Date,
    clientName: string | null,
    details = {},
  ) =>
    rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, details, client_name, created_at)
       VALUES ($1, $2, 'oauth', $3, $3, $4, $5, $6, $7)`,
      [randomUUID(), type, subject, org, JSON.stringify(details), clientName, at],
    );

  it('answers "who logged in to what last Tuesday" by keyboard alone on a phone', async () => {
    const grace = await addMember(app, 'ada@audit-browser.example', 'grace@audit-browser.example');
    const today = Math.floor(Date.now() / DAY) * DAY;
    const weekday = new Date(today).getUTCDay();
    const tuesday = new Date(today - (((weekday - 2 + 6) % 7) + 1) * DAY + DAY / 2);
    await write('oauth_token_issued', grace, tuesday, 'The Wiki', { client_id: 'wiki' });
    await write('login_success', grace, tuesday, null, { key_name: 'Safe' });
    await page.setViewportSize(PHONE);
    await page.goto('/admin');
    let keys = await tabTo(page, 'a[href="/admin/audit"]');
    await page.keyboard.press('Enter');
    await page.waitForURL('/admin/audit');
    keys += await tabTo(page, '[data-questions] li:first-child a');
    await page.keyboard.press('Enter');
    await page.waitForURL(/type=access/);
    const texts = await eventTexts();
    expect(texts).toHaveLength(2);
    expect(texts.join('\n')).toContain('grace@audit-browser.example');
    expect(texts.join('\n')).toContain('The Wiki');
    expect(texts.join('\n')).toContain('“Safe”');
    expect(await page.locator('[data-events] time').first().getAttribute('datetime')).toBe(
      tuesday.toISOString(),
    );
    process.stdout.write(
      `who logged in to what last Tuesday: 2 pages opened, ${keys + 2} keys pressed, 390 px, no curl\n`,
    );
    expect(keys + 2).toBeLessThan(40);
    expect(profile.pageErrors).toEqual([]);
  });

  describe('has no violation of WCAG 2.2 AA, no error and no foreign request, and less than 60 KB', () => {
    it('on the page of the log with a full table and a timeline', async () => {
      const member = await addMember(app, 'ada@audit-browser.example', 'kim@audit-browser.example');
      const types = [
        'login_success',
        'key_registered',
        'login_failed',
        'admin_promote',
        'ssh_credential',
      ];
      for (let n = 0; n < 60; n += 1) {
        const at = new Date(Date.now() - n * 600_000);
        await write(types[n % types.length] ?? '', member, at, null, {
          serial: `${n}`,
          name: 'Ring',
        });
      }
      await checkPage(profile, '/admin/audit', () => page.getByText('Older events').waitFor());
      expect(profile.pageErrors).toEqual([]);
    });

    it('on the page of a search without events, and of one that cannot be used', async () => {
      await checkPage(profile, '/admin/audit?person=none@audit-browser.example');
      await checkPage(profile, '/admin/audit?ip=10.1');
      expect(profile.pageErrors).toEqual([]);
    });

    it('on the page of an event', async () => {
      const { json } = await orgApi(ada.client, 'GET', '/audit-events?type=enrollment&limit=1');
      await checkPage(profile, `/admin/audit/${json.events[0].id as string}`);
      expect(profile.pageErrors).toEqual([]);
    });

    it('on the page of the saved questions', async () => {
      await orgApi(ada.client, 'POST', '/audit-questions', {
        name: 'Kept',
        type: 'keys',
        period: 'today',
      });
      await checkPage(profile, '/admin/audit/questions?type=access&from=2026-11-17');
      expect(profile.pageErrors).toEqual([]);
    });
  });

  it('searches by keyboard alone on a phone', async () => {
    await page.setViewportSize(PHONE);
    await page.goto('/admin/audit');
    await tabTo(page, '[data-filters] summary');
    await page.keyboard.press('Enter');
    await tabTo(page, '#type');
    await page.keyboard.type('Identity bound');
    await tabTo(page, '#person');
    await page.keyboard.type('ada@audit-browser.example');
    await page.keyboard.press('Enter');
    await page.waitForURL(/type=identity_bound/);
    expect(await eventTexts()).toHaveLength(1);
    await tabTo(page, '[data-events] summary');
    await page.keyboard.press('Enter');
    await tabTo(page, '[data-events] a');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Identity bound', exact: true }).waitFor();
    expect(profile.pageErrors).toEqual([]);
  });

  it('saves a question and removes it by keyboard alone on a phone', async () => {
    await page.setViewportSize(PHONE);
    await page.goto('/admin/audit?type=refusals&ip=198.51.100.0%2F24');
    await tabTo(page, 'a[href^="/admin/audit/questions?"]');
    await page.keyboard.press('Enter');
    await page.waitForURL(/questions\?/);
    await tabTo(page, '#question-name');
    await page.keyboard.type('Refused from the office');
    await tabTo(page, '#question-period');
    await page.keyboard.type('Last Tue');
    await tabTo(page, 'form[data-send^="POST"] button');
    await page.keyboard.press('Enter');
    await page.getByRole('status').filter({ hasText: 'Saved.' }).waitFor();
    const kept = page.locator('[data-saved] li').filter({ hasText: 'Refused from the office' });
    expect(await kept.innerText()).toContain('Last Tuesday');
    await page.goto('/admin/audit');
    const href = await page
      .getByRole('link', { name: 'Refused from the office' })
      .getAttribute('href');
    expect(href).toMatch(
      /^\/admin\/audit\?type=refusals&ip=198\.51\.100\.0%2F24&from=[\d-]+&to=[\d-]+$/,
    );
    await page.goto('/admin/audit/questions');
    const id = await kept.locator('form').getAttribute('data-send');
    await tabTo(page, `form[data-send="${id ?? ''}"] button`);
    await page.keyboard.press('Enter');
    await page.getByRole('status').filter({ hasText: 'Removed.' }).waitFor();
    expect(await kept.count()).toBe(0);
    expect(profile.pageErrors).toEqual([]);
  });

  it('shows hostile names in every column as text, at 320 px without an overflow', async () => {
    const request = randomUUID();
    for (const [index, text] of HOSTILE.entries()) {
      await rows(
        app.dataSource,
        `INSERT INTO audit_events (id, type, class, org_id, request_id, subject_email, actor_email, client_name, user_agent, details)
         SELECT gen_random_uuid(), type, 'auth', $1, $2, $3, $3, $3, $3,
                jsonb_build_object('client_id', $3::text, 'key_name', $3::text, 'name', $3::text, 'reason', $3::text, $3::text, $3::text)
         FROM unnest($4::text[]) AS type`,
        [
          org,
          index === 0 ? '<b>request</b>' : request,
          text,
          ['login_success', 'oauth_token_issued', 'key_renamed', 'a_later_type'],
        ],
      );
    }
    await orgApi(ada.client, 'POST', '/audit-questions', { name: '<b>Bold</b>', request });
    await page.setViewportSize({ width: 320, height: 640 });
    for (const path of [
      `/admin/audit?request=${request}`,
      '/admin/audit?request=%3Cb%3Erequest%3C/b%3E',
    ]) {
      const response = await page.goto(path);
      expect(response?.status()).toBe(200);
      expect((await response?.body())?.length).toBeLessThan(60_000);
      expect(await overflowing(page)).toEqual([]);
      expect(await eventTexts()).not.toEqual([]);
      for (const href of await page
        .locator('[data-events] a')
        .evaluateAll((all) => all.map((a) => a.getAttribute('href')))) {
        await page.goto(href ?? '');
        expect(await overflowing(page), href ?? '').toEqual([]);
        expect(
          await page.locator('main img, main script, main b, main a[href^="https:"]').count(),
        ).toBe(0);
      }
      await page.goto(path);
      expect(await page.title()).toMatch(/^Audit log/);
      expect(await page.locator('main img, main script, main b').count()).toBe(0);
    }
    await page.goto('/admin/audit/questions?request=%3Cb%3Ex%3C/b%3E');
    expect(await page.locator('main b').count()).toBe(0);
    expect(await overflowing(page)).toEqual([]);
    expect(profile.pageErrors).toEqual([]);
  });

  it('needs no JavaScript to search, to page and to read an event', async () => {
    const context = await browser.newContext({ baseURL: app.baseUrl, javaScriptEnabled: false });
    await context.addCookies([sessionOf(ada)]);
    const plain = await context.newPage();
    await plain.goto('/admin/audit');
    await plain.getByText('Filters', { exact: true }).click();
    await plain.getByLabel('Person').fill('ada@audit-browser.example');
    await plain.getByRole('button', { name: 'Search' }).click();
    await plain.waitForURL(/person=ada/);
    await plain.locator('[data-events] summary').first().click();
    await plain.locator('[data-events] a').first().click();
    await plain.getByRole('heading', { name: 'Facts' }).waitFor();
    await plain.goto('/admin/audit/questions?type=keys');
    expect(await plain.locator('main').innerText()).toContain('needs JavaScript');
    await context.close();
  });
});
