import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { openProfile, startBrowser } from '../support/browser.js';
import { documentsScript } from '../support/documents.js';
import { checkPage, tabTo } from '../support/page-checks.js';
import { requires } from '../support/programs.js';

/**
 * Questions in the words of users, each with the page that answers it. The search must show that
 * page among its first five results.
 */
const QUESTIONS: readonly (readonly [string, string])[] = [
  ['How do I rotate a SCIM token?', '/docs/operations/key-rotation'],
  ['a colleague lost the security key', '/docs/guides/lost-key'],
  ['Which security keys may we buy?', '/docs/guides/supported-keys'],
  ['make a backup and restore the database', '/docs/guides/backup'],
  ['connect Okta', '/docs/identity-providers/okta'],
  ['sign in with ADFS', '/docs/identity-providers/adfs'],
  ['set up authentik SCIM', '/docs/identity-providers/authentik'],
  ['How do I put nginx in front of the service?', '/docs/guides/reverse-proxies'],
  ['Who may reach which host?', '/docs/guides/access'],
  ['sshd does not accept my certificate', '/docs/troubleshooting'],
  ['wait for a touch in a pipeline', '/docs/guides/ci-pipelines'],
  ['protect an MCP server', '/docs/guides/applications/mcp'],
  ['move from Teleport', '/docs/guides/migration/teleport'],
  ['replace static authorized_keys', '/docs/guides/migration/static-ssh-keys'],
  ['What happens to sessions when the laptop is stolen?', '/docs/guides/runbooks/stolen-laptop'],
  ['Grafana login with OAuth', '/docs/guides/applications/grafana'],
  ['log in on a server without a browser', '/docs/command'],
  ['Prometheus alerts and metrics', '/docs/guides/monitoring'],
  ['What does SVC_DATABASE_URL mean?', '/docs/reference/configuration'],
  ['Can I use a passkey of my phone?', '/docs/faq'],
];

let app: TestApp;

beforeAll(async () => {
  app = await startTestApp();
});

afterAll(() => app.close());

/** Searches for a question. Returns the paths of the pages that are shown, in their order. */
async function foundBy(question: string): Promise<string[]> {
  const { status, text } = await app.client().get(`/docs/search?q=${encodeURIComponent(question)}`);
  expect(status, question).toBe(200);
  const [, list = ''] = /<ol class="found">([^]*?)<\/ol>/.exec(text) ?? [];
  return [...list.matchAll(/<h2><a href="([^"#]+)/g)].map(([, href = '']) => href);
}

describe('/docs', () => {
  it('shows every document of the repository, and its menu leads to each of them', async () => {
    const { pages } = (await documentsScript()).renderDocuments();
    const { text: start } = await app.client().get('/docs');
    const menu = new Set([...start.matchAll(/<a href="(\/docs[^"#]*)"/g)].map(([, href]) => href));
    expect(pages.length).toBeGreaterThan(100);
    for (const { address, html } of pages) {
      expect(menu, address).toContain(address);
      const { status, text } = await app.client().get(address);
      expect(status, address).toBe(200);
      expect(text, address).toContain(html);
      expect(text, address).toContain('aria-current="page"');
      expect(text).not.toMatch(/<script(?! type="module" src="\/static\/page.js")|style=/);
    }
  });

  it('sends the images and files that pages show, and nothing else of a folder', async () => {
    const { pages } = (await documentsScript()).renderDocuments();
    const files = pages.flatMap(({ targets }) =>
      targets.flatMap(({ file, href }) => (file === undefined ? [] : (href ?? []))),
    );
    expect(files).toContain('/docs/files/login.png');
    for (const file of files) {
      const { status, headers } = await app.client().get(file);
      expect(status, file).toBe(200);
      if (file.endsWith('.png')) expect(headers.get('content-type'), file).toBe('image/png');
    }
    for (const path of [
      '/docs/files/index.json',
      '/docs/files/..%2Findex.json',
      '/docs/no-such-page',
      '/docs/guides/README',
      '/docs/..%2Fguide',
      '/docs/__proto__',
      '/docs/toString',
      '/docs/guides/%2e%2e%2f%2e%2e%2findex.json',
    ]) {
      expect((await app.client().get(path)).status, path).toBe(404);
    }
  });

  it.each(QUESTIONS)('its search finds among the first five: %s', async (question, page) => {
    expect((await foundBy(question)).slice(0, 5)).toContain(page);
  });

  it('its search shows a question as text, and finds nothing for words that no page has', async () => {
    const { text } = await app.client().get('/docs/search?q=%3Cscript%3Ealert(1)%3C/script%3E');
    expect(text).not.toContain('<script>alert');
    expect(await foundBy('qqqq zzzz')).toEqual([]);
    expect(await foundBy('__proto__ constructor')).toEqual(await foundBy('constructor'));
    expect((await app.client().get('/docs/search')).text).toContain('Ask as you would ask');
    expect((await app.client().get(`/docs/search?q=${'a'.repeat(201)}`)).status).toBe(400);
  });
});

requires('chromium').describe('the documentation in a browser', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await startBrowser();
  });

  afterAll(() => browser.close());

  it.each([
    '/docs',
    '/docs/faq',
    '/docs/troubleshooting',
    '/docs/reference/configuration',
    '/docs/guides/applications/mcp',
    '/docs/search?q=rotate+a+token',
  ])('is accessible, light and dark, on every screen, within 60 KB: %s', async (path) => {
    const visitor = await openProfile(browser, app.baseUrl);
    await checkPage(visitor, path);
    expect(visitor.pageErrors).toEqual([]);
    await visitor.leave();
  });

  it('is searched and read by the keyboard without JavaScript, and shows its images', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false, baseURL: app.baseUrl });
    const page = await context.newPage();
    await page.goto('/docs');
    await page.getByLabel('Search the documentation').fill('first hour of an admin');
    await page.keyboard.press('Enter');
    await page
      .getByRole('link', { name: /First hour of an admin/ })
      .first()
      .press('Enter');
    await page.getByRole('heading', { level: 1, name: /hour of an admin/ }).waitFor();
    await page.locator('#text img').first().scrollIntoViewIfNeeded();
    await expect
      .poll(() => page.evaluate<number>('document.querySelector("#text img").naturalWidth'))
      .toBeGreaterThan(100);
    await context.close();
  });

  it('has a menu that stands open beside the text, and one key away on a phone', async () => {
    const visitor = await openProfile(browser, app.baseUrl);
    const { page } = visitor;
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto('/docs/guides/backup');
    const link = page.getByRole('link', { name: 'Reverse proxies', exact: true });
    expect(await link.isVisible()).toBe(true);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await link.isVisible()).toBe(false);
    await tabTo(page, '.manual-menu > details > summary');
    await page.keyboard.press('Enter');
    await link.press('Enter');
    await page.waitForURL('**/docs/guides/reverse-proxies');
    await visitor.leave();
  });
});
