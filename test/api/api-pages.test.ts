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

/** The paths that the links of a page lead to. */
async function linksOf(path: string): Promise<string[]> {
  const { status, text } = await app.client().get(path);
  expect(status, path).toBe(200);
  return [...text.matchAll(/href="(\/(?:docs\/api|errors)\/[^"]+)"/g)].map(
    ([, link]) => link ?? '',
  );
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

describe('/docs/api', () => {
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

  it('show their text and lead to each other by the keyboard without JavaScript', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false, baseURL: app.baseUrl });
    const page = await context.newPage();
    await page.goto('/docs/api');
    await page.getByRole('link', { name: 'Security keys' }).press('Enter');
    await page.getByRole('heading', { name: 'Removes a security key' }).waitFor();
    await page.getByRole('link', { name: 'last_key' }).press('Enter');
    const heading = page.getByRole('heading', { name: 'Your only key' });
    await heading.waitFor();
    expect(page.url()).toBe(`${app.baseUrl}/errors/last_key`);
    await context.close();
  });
});
