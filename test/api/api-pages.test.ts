import { spawnSync } from 'node:child_process';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API } from '../../src/features/openapi/api-groups.js';
import { CATALOGUE } from '../../src/platform/errors/catalogue.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { openProfile, startBrowser } from '../support/browser.js';
import { checkPage } from '../support/page-checks.js';
import { requires } from '../support/programs.js';

let app: TestApp;

beforeAll(async () => {
  app = await startTestApp();
});

afterAll(() => app.close());

/** Returns the distinct paths of API and error pages that a page links, without fragments. */
async function linksOf(path: string): Promise<string[]> {
  const { status, text } = await app.client().get(path);
  expect(status, path).toBe(200);
  const links = [...text.matchAll(/href="(\/(?:docs\/api|errors)\/[^"#]+)(?:#[^"]*)?"/g)];
  return [...new Set(links.map(([, link]) => link ?? ''))];
}

describe('the error catalogue', () => {
  it('has a page for every code, with its cause, its remedy and the routes that state it', async () => {
    const links = await linksOf('/errors');
    expect(links.toSorted()).toEqual(
      Object.keys(CATALOGUE)
        .map((code) => `/errors/${code}`)
        .toSorted(),
    );
    for (const link of links) {
      const { status, text } = await app.client().get(link);
      expect(status, link).toBe(200);
      expect(text, link).toMatch(
        /<h2>Cause<\/h2>\s*<p>[^<]{10,}<\/p>\s*<h2>Remedy<\/h2>\s*<p>[^<]{10,}<\/p>/,
      );
    }
    const { text } = await app.client().get('/errors/last_key');
    expect(text).toContain('<code>DELETE /v1/keys/{id}</code>');
  });

  it('is what the type of a problem document names', async () => {
    const { json } = await app.client().get('/v1/keys');
    expect(json.type).toBe(`${app.baseUrl}/errors/unauthenticated`);
    expect((await app.client().get(json.type)).text).toContain('Not signed in');
  });

  it('has no page for a text that is no code', async () => {
    for (const code of ['toString', '__proto__', 'no_such_code', '%3Cb%3E']) {
      expect((await app.client().get(`/errors/${code}`)).status, code).toBe(404);
    }
  });
});

/** Returns the text of each `<pre class="wrapped">` of a page, with entities decoded. */
function linesIn(page: string): string[] {
  const found = [...page.matchAll(/<pre class="wrapped"><code>(.*?)<\/code><\/pre>/gs)];
  const texts = found.map(([, text = '']) => text);
  return texts.map((text) =>
    text
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&quot;', '"')
      .replaceAll('&#39;', "'")
      .replaceAll('&amp;', '&'),
  );
}

/**
 * Runs lines in a shell in which `curl` and `svc` print their arguments. Returns the words of each
 * command.
 */
function wordsOf(lines: readonly string[]): string[][] {
  const commands = ['curl', 'svc'].map(
    (name) => `${name}() { printf '%s\\0' ${name} "$@"; echo; }`,
  );
  const script = [...commands, 'TOKEN=t SCIM_TOKEN=s API_TOKEN=a REGISTRATION_TOKEN=r', ...lines];
  const { stdout, status } = spawnSync('sh', ['-eu'], {
    input: script.join('\n'),
    encoding: 'utf8',
  });
  expect(status).toBe(0);
  return stdout
    .trimEnd()
    .split('\0\n')
    .map((line) => line.replace(/\0$/, '').split('\0'));
}

describe('/docs/api', () => {
  it('shows lines of curl and svc api that a shell reads as the request of the example', async () => {
    const { json } = await app.client().get('/openapi.json');
    const groups = await linksOf('/docs/api');
    const pages = await Promise.all(
      groups.map(async (link) => (await app.client().get(link)).text),
    );
    const words = wordsOf(pages.flatMap(linesIn).filter((line) => /^(?:curl|svc) /.test(line)));
    const operations = Object.values<object>(json.paths).flatMap((one) => Object.values(one));
    const sent = words.filter(([program]) => program === 'curl');
    expect(sent).toHaveLength(operations.length);
    const bodies = operations.flatMap(({ requestBody }) => {
      const [[type, media]] = Object.entries<{ example?: unknown }>(
        requestBody?.content ?? { none: {} },
      ) as [[string, { example?: unknown }]];
      return /json/.test(type) && media.example !== undefined ? [media.example] : [];
    });
    const shown = sent.flatMap((line) => {
      const at = line.indexOf('--data');
      return at < 0 ? [] : [JSON.parse(line[at + 1] ?? '') as unknown];
    });
    expect(shown).toHaveLength(bodies.length);
    for (const body of bodies) expect(shown).toContainEqual(body);
    const urls = sent.map((line) => line.find((word) => word.startsWith(app.baseUrl)) ?? '');
    expect(urls.filter((url) => !URL.canParse(url) || /[{}]/.test(url))).toEqual([]);
    const ofSvc = words.filter(([program]) => program === 'svc');
    expect(ofSvc.map(([, api, , path = '']) => `${api} ${path.slice(0, 3)}`)).toEqual(
      ofSvc.map(() => expect.stringMatching(/^api \/(?:v1|ap)/)),
    );
    expect(ofSvc.length).toBeGreaterThan(60);
  });

  it('shows every operation of the document on the page of its group, below 60 KB', async () => {
    const { json } = await app.client().get('/openapi.json');
    const groups = await linksOf('/docs/api');
    const pages = await Promise.all(
      groups.map(async (link) => (await app.client().get(link)).text),
    );
    for (const [i, page] of pages.entries()) {
      expect(Buffer.byteLength(page), groups[i]).toBeLessThan(60 * 1024);
      expect(page).not.toMatch(/<script(?! type="module" src="\/static\/page.js")|style=/);
    }
    const shown = pages.join('');
    for (const [path, methods] of Object.entries<object>(json.paths)) {
      for (const method of Object.keys(methods)) {
        expect(shown).toContain(`<code>${method.toUpperCase()} ${path}</code>`);
      }
    }
    expect((await app.client().get('/docs/api/no-such-group')).status).toBe(404);
  });
});

requires('chromium').describe('the documents in a browser', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await startBrowser();
  });

  afterAll(() => browser.close());

  const groups = API.groups.map(({ name }) => name.toLowerCase().replaceAll(' ', '-'));

  it('lead from the first page to the page of each group', async () => {
    const paths = await linksOf('/docs/api');
    expect(paths).toEqual(expect.arrayContaining(groups.map((group) => `/docs/api/${group}`)));
  });

  it.each([
    '/errors',
    '/errors/internal',
    '/docs/api',
    ...groups.map((name) => `/docs/api/${name}`),
  ])('are accessible, light and dark, on every screen, within 60 KB: %s', async (path) => {
    const visitor = await openProfile(browser, app.baseUrl);
    await checkPage(visitor, path);
    expect(visitor.pageErrors).toEqual([]);
    await visitor.leave();
  });

  it('are found by a search that the keyboard alone can use, on a phone', async () => {
    const visitor = await openProfile(browser, app.baseUrl);
    const { page } = visitor;
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto('/docs/api');
    const field = page.getByRole('searchbox', { name: 'Search the routes' });
    const shown = () => page.locator('[data-words]:visible dt').allTextContents();
    const status = page.locator('[data-api-search] [role="status"]');
    await field.focus();
    await page.keyboard.type('Rotate scim');
    await expect.poll(shown).toEqual(['POST /api/v1/programs/scim-tokens/{id}/rotate']);
    expect(await status.textContent()).toBe('1 route');
    await field.fill('touch_within_seconds nothing-has-this');
    await expect.poll(shown).toEqual([]);
    expect(await status.textContent()).toBe('0 routes');
    await field.fill('listMembers limit');
    await expect.poll(shown).toContain('GET /api/v1/org/members');
    await page.getByRole('link', { name: 'GET /api/v1/org/members', exact: true }).press('Enter');
    await page.getByRole('heading', { name: 'Lists the members', exact: true }).waitFor();
    expect(page.url()).toBe(`${app.baseUrl}/docs/api/members#listMembers`);
    expect(visitor.pageErrors).toEqual([]);
    await visitor.leave();
  });

  it('show their text and lead to each other by the keyboard without JavaScript', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false, baseURL: app.baseUrl });
    const page = await context.newPage();
    await page.goto('/docs/api');
    expect(await page.getByRole('searchbox').count()).toBe(0);
    await page.getByRole('link', { name: 'Security keys' }).press('Enter');
    await page.getByRole('heading', { name: 'Removes a security key' }).waitFor();
    await page.getByRole('link', { name: 'last_key' }).press('Enter');
    const heading = page.getByRole('heading', { name: 'Your only key' });
    await heading.waitFor();
    expect(page.url()).toBe(`${app.baseUrl}/errors/last_key`);
    await context.close();
  });
});
