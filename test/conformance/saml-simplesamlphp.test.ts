import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { startBrowser } from '../support/browser.js';
import { requires } from '../support/programs.js';
import { count } from '../support/rows.js';
import { expectBrowserJourney } from '../support/saml/browser-journey.js';
import { expectWholeWay, metadataOf, samlEnvironment } from '../support/saml/saml-app.js';
import { beginSamlSignIn } from '../support/saml/saml-browser.js';
import { NAME_ID } from '../support/saml/saml-names.js';
import {
  PHP_USER,
  signInAtSimpleSamlPhp,
  startSimpleSamlPhp,
  type SimpleSamlPhp,
} from '../support/saml/simplesamlphp.js';

requires('php', 'simplesamlphp').describe("Debian's SimpleSAMLphp as identity provider", () => {
  let php: SimpleSamlPhp;
  let strict: SimpleSamlPhp;
  let app: TestApp;
  beforeAll(async () => {
    [php, strict] = await Promise.all([
      startSimpleSamlPhp(),
      startSimpleSamlPhp({ wantsSignedRequests: true, nameIdFormat: NAME_ID.persistent }),
    ]);
    app = await startTestApp({
      environment: samlEnvironment({
        php: { metadataUrl: php.metadataUrl },
        strict: { metadataUrl: strict.metadataUrl, settings: { EMAIL_ATTRIBUTE: 'mail' } },
      }),
    });
    await php.trust(await metadataOf(app, 'php'));
    await strict.trust(await metadataOf(app, 'strict'));
  });
  afterAll(async () => {
    await app.close();
    await Promise.all([php.close(), strict.close()]);
  });

  it('signs a user in, who enrolls, logs out, logs in by the key, and signs in again', async () => {
    await expectWholeWay(app, { email: PHP_USER.email, issuer: php.entityId }, (client) =>
      signInAtSimpleSamlPhp(client, 'php'),
    );
  });

  it('that demands signed requests accepts ours, and refuses one whose signature was removed', async () => {
    const client = app.client();
    const { url } = await beginSamlSignIn(client, 'strict');
    expect(url.searchParams.get('SigAlg')).toMatch(/rsa-sha256$/);
    const accepted = await client.follow(url.href);
    expect([accepted.status, accepted.text]).toEqual([
      200,
      expect.stringContaining('name="password"'),
    ]);
    url.searchParams.delete('Signature');
    url.searchParams.delete('SigAlg');
    const refused = await app.client().follow(url.href);
    expect(refused.text).toContain('no signature found on message');
    expect(refused.text).not.toContain('name="password"');
  });

  it('of another entity id cannot sign in a user of the first, although the address is the same', async () => {
    const page = await signInAtSimpleSamlPhp(app.client(), 'strict');
    expect(page.status).toBe(403);
    expect(await count(app.dataSource, 'users WHERE email = $1', [PHP_USER.email])).toBe(1);
  });
});

requires('php', 'simplesamlphp', 'chromium').describe('SimpleSAMLphp and Chromium', () => {
  let php: SimpleSamlPhp;
  let app: TestApp;
  let browser: Browser;
  beforeAll(async () => {
    php = await startSimpleSamlPhp();
    app = await startTestApp({
      environment: samlEnvironment({ php: { metadataUrl: php.metadataUrl } }),
    });
    await php.trust(await metadataOf(app, 'php'));
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
    await php.close();
  });

  it('a user signs in across two sites with Lax cookies, enrolls, logs out and logs in again', async () => {
    const errors = await expectBrowserJourney(app, browser, 'php', async (page) => {
      await page.waitForURL(`${php.origin}/**`);
      await page.locator('#username').fill(PHP_USER.name);
      await page.locator('#password').fill(PHP_USER.password);
      await page.locator('#password').press('Enter');
    });
    // Debian leaves out an image of SimpleSAMLphp's page, so its 404 is no fault.
    expect(errors.filter((error) => !error.includes('404'))).toEqual([]);
  });
});
