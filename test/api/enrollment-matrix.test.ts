import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { startBrowser, openProfile, type BrowserProfile } from '../support/browser.js';
import {
  addChromiumKey,
  ChromiumKeyVendor,
  type ChromiumAuthenticator,
} from '../support/chromium-key.js';
import { requires } from '../support/programs.js';
import { rows } from '../support/rows.js';

const ALLOWED = 'fa2b99dc-9e39-4257-8f92-4a30d23c4118'; // YubiKey 5 Series with NFC
const EXCLUDED = 'd8522d9f-575b-4866-88a9-ba99fa02f35b'; // YubiKey Bio Series - FIDO Edition

/**
 * Returns a script that changes the creation options between the page and the browser, as an
 * extension can.
 */
const asking = (change: string) => `{
  const create = navigator.credentials.create.bind(navigator.credentials);
  navigator.credentials.create = ({ publicKey }) => {
    ${change}
    return create({ publicKey });
  };
}`;

interface Case {
  readonly name: string;
  readonly code: string;
  readonly key?: ChromiumAuthenticator;
  /**
   * The model (AAGUID) that the vendor attests. If undefined, the attestation is Chromium's own.
   */
  readonly model?: string;
  readonly script?: string;
  /** The time limit of the ceremony in milliseconds, if it is not that of the service. */
  readonly timeout?: number;
  /** True if the page must say that the key now holds a useless credential. */
  readonly isOrphan: boolean;
}

const MATRIX: readonly Case[] = [
  {
    name: 'a passkey of the device, which an extension asks for',
    code: 'device_passkey',
    key: { transport: 'internal' },
    script: asking('delete publicKey.authenticatorSelection.authenticatorAttachment;'),
    isOrphan: true,
  },
  {
    name: 'a device alone, which the browser does not take',
    code: 'not_completed',
    key: { transport: 'internal' },
    timeout: 300,
    isOrphan: false,
  },
  {
    name: 'a key whose make and model the browser keeps to itself',
    code: 'attestation_missing',
    script: asking("publicKey.attestation = 'none';"),
    isOrphan: true,
  },
  { name: 'a key of another make', code: 'attestation_rejected', isOrphan: true },
  {
    name: 'a model that the policy excludes',
    code: 'model_not_allowed',
    model: EXCLUDED,
    isOrphan: true,
  },
  {
    name: 'a key that checks no PIN',
    code: 'user_verification_missing',
    key: { hasResidentKey: false, hasUserVerification: false, isUserVerified: false },
    model: ALLOWED,
    isOrphan: true,
  },
];

requires('chromium').describe('enrollment in Chromium, by virtual authenticators', () => {
  const vendor = new ChromiumKeyVendor();
  let app: TestApp;
  let browser: Browser;
  let visitor: BrowserProfile;
  let page: Page;

  beforeAll(async () => {
    app = await startTestApp({
      environment: { SVC_ALLOWED_AAGUIDS: ALLOWED },
      attestationRoots: [vendor.rootPem],
    });
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });
  beforeEach(async () => {
    visitor = await openProfile(browser, app.baseUrl);
    page = visitor.page;
  });
  afterEach(() => visitor.leave());

  const status = () => page.locator('[data-status]');

  /**
   * Signs in as a new user, and tries to enroll a key of Chromium. Returns the last message of the
   * page.
   */
  async function enroll(email: string, { key, model, script, timeout }: Partial<Case>) {
    await addChromiumKey(page, undefined, key);
    if (model !== undefined) await vendor.attest(page, model);
    if (script !== undefined) await page.addInitScript(script);
    if (timeout !== undefined) {
      await page.route('**/enroll/webauthn/start', async (route) => {
        const answer = await route.fetch();
        const { publicKey, ...rest } = (await answer.json()) as { publicKey: object };
        await route.fulfill({
          response: answer,
          json: { ...rest, publicKey: { ...publicKey, timeout } },
        });
      });
    }
    await page.goto(`/login?provider=demo&login_hint=${encodeURIComponent(email)}`);
    await page.getByRole('button', { name: 'Enroll this key' }).click();
    await status().and(page.locator('[data-kind=error]')).waitFor();
    return (await status().textContent()) ?? '';
  }

  const sentences = new Map<string, string>();

  it.each(MATRIX)('10.24 $name: refused as $code', async (one) => {
    const email = `${one.code}@matrix.example`;
    const orphans: { rpId: string; credentialId: string }[] = [];
    await page.exposeFunction('signalled', (orphan: (typeof orphans)[number]) =>
      orphans.push(orphan),
    );
    await page.addInitScript(
      'PublicKeyCredential.signalUnknownCredential = async (o) => signalled(o);',
    );
    const sent = page.waitForRequest(/enroll\/webauthn\/(complete|failed)$/);

    const text = await enroll(email, one);
    const [sentence = '', reference = ''] = text.split('\nReference: ');
    sentences.set(one.code, sentence);
    const kept = await rows(
      app.dataSource,
      `SELECT class, request_id, details ->> 'code' AS code FROM audit_events
       WHERE type = 'enrollment_refused' AND details ->> 'email' = $1`,
      [email],
    );
    expect(kept).toEqual([{ class: 'auth', request_id: reference, code: one.code }]);
    const { credential } = (await sent).postDataJSON() as { credential?: { id: string } };
    expect(orphans).toEqual(
      one.isOrphan ? [{ rpId: 'localhost', credentialId: credential?.id }] : [],
    );
    expect(await page.getByRole('button', { name: 'Enroll this key' }).isEnabled()).toBe(true);
  });

  it('10.24 each cause has its own error text, and a model its name', () => {
    expect(new Set(sentences.values()).size).toBe(MATRIX.length);
    expect(sentences.get('model_not_allowed')).toContain('YubiKey Bio Series - FIDO Edition');
  });

  it('10.24 the page lists the allowed models before the key is touched', async () => {
    await page.goto('/login?provider=demo&login_hint=reader@matrix.example');
    await page.getByText('YubiKey 5 Series with NFC').first().waitFor();
    expect(visitor.pageErrors).toEqual([]);
  });

  it('10.24 a genuine key of an allowed model enrolls at the first try', async () => {
    await addChromiumKey(page);
    await vendor.attest(page, ALLOWED);
    await page.goto('/login?provider=demo&login_hint=lucky@matrix.example');
    await page.getByRole('button', { name: 'Enroll this key' }).click();
    await page.getByText('Verified with your security key').waitFor();
    await page.goto('/account/keys');
    await page.locator('[data-event=enrollment]').waitFor();
    expect(visitor.pageErrors).toEqual([]);
  });
});
