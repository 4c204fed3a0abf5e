import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { startBrowser } from '../../support/browser.js';
import { newAddress } from '../../support/client.js';
import { KeyboardWalk, openAs } from '../../support/console.js';
import { assigned } from '../../support/domains.js';
import '../../support/full-scale-only.js';
import { accessibilityViolations, checkPage, overflowing } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';

/**
 * For each kind of application: the fields of its form besides the name, and the members of its
 * JSON at the API that these fields set.
 */
const KINDS: Readonly<Record<string, { fields: Record<string, string>; becomes: object }>> = {
  web: {
    fields: { redirect_uris: 'https://a.example/back\nhttps://b.example/back' },
    becomes: { redirect_uris: ['https://a.example/back', 'https://b.example/back'] },
  },
  spa: {
    fields: { redirect_uris: 'https://spa.example/back' },
    becomes: { redirect_uris: ['https://spa.example/back'] },
  },
  native: {
    fields: { redirect_uris: 'http://127.0.0.1/back' },
    becomes: { redirect_uris: ['http://127.0.0.1/back'] },
  },
  service: { fields: {}, becomes: { grant_types: ['client_credentials'] } },
  kubernetes: {
    fields: { resource: 'https://prod.k8s.example' },
    becomes: { resource: 'https://prod.k8s.example' },
  },
};
const WITH_SECRET = new Set(['web', 'service']);

const SIGN_IN = [
  'authorization_endpoint',
  'token_endpoint',
  'userinfo_endpoint',
  'jwks_uri',
  'end_session_endpoint',
];

/**
 * The members of the discovery metadata (RFC 8414) whose URLs the page of an application shows, by
 * kind.
 */
const ENDPOINTS: Readonly<Record<string, readonly string[]>> = {
  web: [
    ...SIGN_IN,
    'pushed_authorization_request_endpoint',
    'introspection_endpoint',
    'revocation_endpoint',
  ],
  spa: [...SIGN_IN, 'revocation_endpoint'],
  native: [...SIGN_IN, 'device_authorization_endpoint', 'revocation_endpoint'],
  service: ['token_endpoint', 'jwks_uri', 'introspection_endpoint', 'revocation_endpoint'],
  kubernetes: ['jwks_uri'],
};

requires('chromium').describe('the forms of applications in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let admin: EnrolledUser;
  /** The client ids of the applications that an earlier test registered, by kind. */
  const registered: Record<string, string> = {};
  beforeAll(async () => {
    app = await startTestApp();
    admin = await app.enrolled('ada@forms.example');
    await assigned(app, 'ada@forms.example', 'k8s.example');
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  const open = (page: Page) =>
    page.evaluate('for (const one of document.querySelectorAll("details")) one.open = true');

  /** Returns the discovery metadata, with its own URL as `discovery`. */
  const discovered = async () => {
    const path = '/.well-known/openid-configuration';
    const { json } = await app.client().get(path);
    return { ...json, discovery: app.baseUrl + path } as Readonly<Record<string, string>>;
  };

  /**
   * Expects that the page shows the URLs with these names in the discovery metadata, and that the
   * button of each copies it.
   */
  async function expectAddresses(page: Page, names: readonly string[]): Promise<void> {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const metadata = await discovered();
    const shown = page.locator('[id^="endpoint-"]:visible');
    const ids = await shown.evaluateAll((all) => all.map(({ id }) => id.replace('endpoint-', '')));
    expect(ids).toEqual(['issuer', 'discovery', ...names]);
    for (const name of ids) {
      const button = page.locator(`[data-copy="endpoint-${name}"]:visible`);
      await button.press('Enter');
      await expect.poll(() => button.textContent()).toBe('Copied');
      expect(await button.getAttribute('aria-label')).toMatch(/^Copied: /);
      expect(await page.evaluate('navigator.clipboard.readText()'), name).toBe(metadata[name]);
    }
    expect(await page.locator('.spoken[role="status"]').textContent()).toBe('Copied.');
  }

  it('names the methods and the grants as other products do, beside the words', async () => {
    const profile = await openAs(browser, app, admin);
    const { page } = profile;
    const texts = async (kind: string, selector: string) => {
      await page.goto(`/admin/applications/new?type=${kind}`);
      return page.locator(selector).allTextContents();
    };
    expect(await texts('web', '#field-auth_method option')).toEqual([
      'The default: client_secret_basic, with FAPI 2.0 private_key_jwt',
      'A secret in the Authorization header (client_secret_basic)',
      'A secret in the body (client_secret_post)',
      'A signed assertion of its own key (private_key_jwt)',
      'A certificate of a configured authority (tls_client_auth)',
      'A certificate of its own (self_signed_tls_client_auth)',
    ]);
    for (const kind of ['spa', 'native']) {
      expect((await texts(kind, '[data-fact="auth_method"]')).join('')).toContain('(none)');
    }
    expect((await texts('native', 'fieldset label')).join('')).toContain('(authorization_code)');
    await profile.leave();
  });

  it.each(Object.keys(KINDS))(
    'the form of this kind is accessible and small on every screen: %s',
    async (kind) => {
      const profile = await openAs(browser, app, admin);
      await checkPage(profile, `/admin/applications/new?type=${kind}`, open);
      expect(profile.pageErrors).toEqual([]);
      await profile.leave();
    },
  );

  it.each(Object.entries(KINDS))(
    'an application of this kind is registered by keyboard alone at 390 px: %s',
    async (kind, { fields, becomes }) => {
      const profile = await openAs(browser, app, admin);
      const { page } = profile;
      const walk = await KeyboardWalk.begin(page, '/admin/applications');
      await walk.press('a[href="/admin/applications/new"]');
      await page.waitForURL('**/new');
      await walk.press(`a[href$="?type=${kind}"]`);
      await page.waitForURL(`**/new?type=${kind}`);
      await walk.fill('#field-name', `A ${kind}`);
      for (const [name, text] of Object.entries(fields)) await walk.fill(`#field-${name}`, text);
      await walk.press('form[data-secret] button');
      if (WITH_SECRET.has(kind)) {
        await page.locator('[data-result]').waitFor();
        expect(await page.locator('#client-id').textContent()).not.toBe('');
        await expectAddresses(page, ENDPOINTS[kind] ?? []);
        expect(await accessibilityViolations(page)).toEqual([]);
        expect(await overflowing(page)).toEqual([]);
        await walk.press('[data-onward]');
      }
      await page.waitForURL(/applications\/[\w-]{20,}$/);
      await page.getByRole('heading', { name: `A ${kind}` }).waitFor();
      await expectAddresses(page, ENDPOINTS[kind] ?? []);
      walk.print(`register an application: ${kind}`);
      const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
      const { json } = await admin.client.get(`/api/v1/applications/${id}`, {
        address: newAddress(),
      });
      expect(json).toMatchObject({ type: kind, name: `A ${kind}`, ...becomes });
      expect(profile.pageErrors).toEqual([]);
      registered[kind] = id;
      await profile.leave();
    },
  );

  it.each(Object.keys(KINDS))(
    'the page of an application of this kind is accessible and small, and its form changes it by keyboard: %s',
    async (kind) => {
      const path = `/admin/applications/${registered[kind]}`;
      const profile = await openAs(browser, app, admin);
      const { page } = profile;
      await checkPage(profile, path, open);
      const walk = await KeyboardWalk.begin(page, path);
      await walk.press('details:has(#field-name) > summary');
      await walk.fill('#field-name', `Another ${kind}`);
      await page.keyboard.press('Enter');
      await page.getByText('The registration is changed.').waitFor();
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(`Another ${kind}`);
      expect(profile.pageErrors).toEqual([]);
      await profile.leave();
    },
  );

  it('says at the form why an address of a kind is refused, and registers nothing', async () => {
    const profile = await openAs(browser, app, admin);
    const { page } = profile;
    for (const kind of ['web', 'spa', 'native']) {
      const walk = await KeyboardWalk.begin(page, `/admin/applications/new?type=${kind}`);
      await walk.fill('#field-name', 'Refused');
      await walk.fill('#field-redirect_uris', 'javascript:alert(1)');
      await walk.press('form[data-secret] button');
      await page.locator('form [data-status][data-kind="error"]').waitFor();
    }
    await page.goto('/admin/applications');
    expect(await page.getByText('Refused').count()).toBe(0);
    await profile.leave();
  });
});
