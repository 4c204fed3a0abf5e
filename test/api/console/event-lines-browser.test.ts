import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { openProfile, startBrowser, type BrowserProfile } from '../../support/browser.js';
import { KeyboardWalk, openWithoutScripts } from '../../support/console.js';
import '../../support/full-scale-only.js';
import { idOf } from '../../support/org-api.js';
import { accessibilityViolations, overflowing } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';
import { rows } from '../../support/rows.js';

const EMAIL = 'ada@event-lines.example';
/** The time of the newest of 24 events. In the time zone of Tokyo the events are on two days. */
const NEWEST = new Date('2026-11-20T16:00:07Z');
const EVENTS = 24;
/** The greatest height in pixels of 24 closed events with the headings of their two days. */
const TALLEST = EVENTS * 36 + 120;

requires('chromium').describe('lists of events in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let ada: EnrolledUser;
  let member: string;
  let profile: BrowserProfile;
  let page: Page;
  beforeAll(async () => {
    app = await startTestApp();
    browser = await startBrowser();
    ada = await app.enrolled(EMAIL);
    member = await idOf(app, EMAIL);
    await rows(app.dataSource, 'DELETE FROM audit_events');
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, actor_id, subject_id, actor_email, subject_email, org_id, details, user_agent, ip, request_id, created_at)
       SELECT gen_random_uuid(), (ARRAY['login_success', 'key_renamed', 'session_ended'])[1 + n % 3], 'auth', id, id, email, email, org_id,
              '{"key_name": "Key ring", "serial": "4711", "name": "Key ring", "earlier_name": "Safe"}',
              'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
              '203.0.113.9', 'reference-' || n, $2::timestamptz - make_interval(mins => 5 * n)
       FROM users, generate_series(0, $3) n WHERE id = $1`,
      [member, NEWEST, EVENTS - 1],
    );
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });
  beforeEach(async () => {
    profile = await openProfile(browser, app.baseUrl);
    ({ page } = profile);
    await page.context().addCookies([cookie()]);
    return () => profile.leave();
  });

  const cookie = () => ({
    name: 'svc_session',
    value: ada.client.cookie('svc_session') ?? '',
    url: app.baseUrl,
  });
  const paths = () => ['/account/activity', '/admin/audit', `/admin/members/${member}`];
  const lines = '[data-events] li';

  /**
   * Returns the number of shown events, and the pixels from the top of the first to the bottom of
   * the last.
   */
  const measured = () =>
    page.locator(lines).evaluateAll((all) => {
      const boxes = all.map((one) => one.getBoundingClientRect());
      const top = Math.min(...boxes.map((box) => box.top));
      return { events: all.length, height: Math.max(...boxes.map((box) => box.bottom)) - top };
    });

  it.each([390, 1280])('shows an event on one line at %i pixels', async (width) => {
    await page.setViewportSize({ width, height: 844 });
    for (const [n, path] of paths().entries()) {
      await page.goto(path);
      const { events, height } = await measured();
      console.log(`${path}: ${events} events are ${Math.round(height)} px tall at ${width} px`);
      expect(events, path).toBe(n === 2 ? 10 : EVENTS);
      expect(height, path).toBeLessThan(TALLEST);
      const tallest = await page
        .locator(lines)
        .evaluateAll((all) => Math.max(...all.map((one) => one.clientHeight)));
      expect(tallest, path).toBeLessThan(40);
      expect(await overflowing(page), path).toEqual([]);
    }
    expect(profile.pageErrors).toEqual([]);
  });

  it('opens an event by the keyboard alone at 390 pixels, to the whole sentence and the facts', async () => {
    for (const path of paths()) {
      const walk = await KeyboardWalk.begin(page, path);
      await walk.press('[data-events] summary');
      const open = page.locator(`${lines}:has([open])`);
      const text = await open.innerText();
      expect(text, path).toContain('reference-0');
      expect(text, path).toContain('203.0.113.9');
      expect(text, path).toContain('Chrome');
      const cut = await open
        .locator('summary span')
        .evaluate((span) => span.scrollWidth > span.clientWidth);
      expect(cut, path).toBe(false);
      expect(await overflowing(page), path).toEqual([]);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await accessibilityViolations(page), `${path} ${colorScheme}`).toEqual([]);
      }
      await page.keyboard.press('Space');
      expect(await page.locator(`${lines} [open]`).count(), path).toBe(0);
    }
    expect(profile.pageErrors).toEqual([]);
  });

  it('writes times with seconds and zone in the language and the days of the reader', async () => {
    const context = await browser.newContext({
      baseURL: app.baseUrl,
      locale: 'fr-FR',
      timezoneId: 'Asia/Tokyo',
    });
    await context.addCookies([cookie()]);
    const reader = await context.newPage();
    for (const path of paths()) {
      await reader.goto(path);
      const days = reader.locator('[data-days] .day');
      await expect
        .poll(() => days.allTextContents(), { message: path })
        .toEqual(
          path.includes('members')
            ? ['samedi 21 novembre 2026, UTC+9']
            : ['samedi 21 novembre 2026, UTC+9', 'vendredi 20 novembre 2026, UTC+9'],
        );
      expect(await reader.locator('[data-clock]').first().textContent()).toBe('01:00:07');
      const whole = reader.locator('[data-events] dd time').first();
      expect(await whole.textContent()).toMatch(/^21 nov\. 2026,? (?:à )?01:00:07 UTC\+9$/);
      expect(await whole.getAttribute('lang')).toBe('fr-FR');
      expect(await whole.getAttribute('title')).toBe('20 Nov 2026, 16:00:07 UTC');
    }
    await context.close();
  });

  it('skips what the browser names as a language and is no tag of one', async () => {
    await page.addInitScript(
      "Object.defineProperty(navigator, 'languages', { value: ['en-US@posix', 'de-DE'] })",
    );
    await page.goto('/account/activity');
    const whole = page.locator('[data-events] dd time').first();
    await expect.poll(() => whole.getAttribute('lang')).toBe('de-DE');
    expect(profile.pageErrors).toEqual([]);
  });

  it('names a day twice on which the clocks change, so that no time is ambiguous', async () => {
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, actor_id, subject_id, created_at)
       SELECT gen_random_uuid(), 'logout', 'auth', $1, $1, at
       FROM unnest(ARRAY['2026-10-25T00:30:00Z', '2026-10-25T01:30:00Z']::timestamptz[]) at`,
      [member],
    );
    const context = await browser.newContext({
      baseURL: app.baseUrl,
      locale: 'en-GB',
      timezoneId: 'Europe/Berlin',
    });
    await context.addCookies([cookie()]);
    const reader = await context.newPage();
    await reader.goto('/account/activity');
    const days = await reader.locator('[data-days] .day').allTextContents();
    expect(days.slice(-2)).toEqual([
      expect.stringMatching(/^Sunday,? 25 October 2026, CET$/),
      expect.stringMatching(/^Sunday,? 25 October 2026, CEST$/),
    ]);
    expect(await reader.locator('[data-event="logout"] [data-clock]').allTextContents()).toEqual([
      '02:30:00',
      '02:30:00',
    ]);
    await rows(app.dataSource, "DELETE FROM audit_events WHERE type = 'logout'");
    await context.close();
  });

  it('groups by days of UTC without JavaScript, and opens a line all the same', async () => {
    const plain = await openWithoutScripts(browser, app, ada.client);
    for (const path of paths()) {
      await plain.goto(path);
      const days = await plain.locator('[data-days] .day').allTextContents();
      expect(days, path).toEqual([expect.stringMatching(/^Friday,? 20 November 2026, UTC$/)]);
      await plain.locator('[data-events] summary').first().click();
      await plain.getByText('20 Nov 2026, 16:00:07 UTC').first().waitFor();
    }
    await plain.context().close();
  });
});
