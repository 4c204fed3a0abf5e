import type { SoftwareKey } from '@svc/stand-ins/software-key';
import type { TestApp } from './app.js';
import { newAddress, type Answer, type Client } from './client.js';
import { idOf, orgApi } from './org-api.js';

/**
 * An organization with the admin ada and the member bob, each with a browser that is logged in and
 * a security key.
 */
export interface PassGround {
  readonly domain: string;
  readonly ada: Client;
  readonly adaKey: SoftwareKey;
  readonly bob: Client;
  readonly bobKey: SoftwareKey;
  readonly ids: { readonly ada: string; readonly bob: string };
}

/** Creates an organization with ada, its admin, and bob, a member, each with a key. */
export async function passGround(app: TestApp, domain: string): Promise<PassGround> {
  const { client: ada, key: adaKey } = await app.enrolled(`ada@${domain}`);
  const { client: bob, key: bobKey } = await app.enrolled(`bob@${domain}`);
  const ids = { ada: await idOf(app, `ada@${domain}`), bob: await idOf(app, `bob@${domain}`) };
  return { domain, ada, adaKey, bob, bobKey, ids };
}

/**
 * Requests, as an admin, a re-enrollment pass for a member. The pass is a one-time secret for a
 * member with a lost key.
 */
export function givePass(admin: Client, memberId: string): Promise<Answer> {
  return orgApi(admin, 'POST', `/members/${memberId}/enrollment-passes`);
}

/** Requests a re-enrollment pass for a member as an admin, and returns its secret. */
export async function passFor(admin: Client, memberId: string): Promise<string> {
  const answer = await givePass(admin, memberId);
  if (answer.status !== 201) throw new Error(`no pass: ${answer.text}`);
  return (answer.json as { pass: string }).pass;
}

/**
 * Begins the enrollment of a key with or without a re-enrollment pass, from an unused client IP
 * address.
 */
export function startWith(browser: Client, pass?: string): Promise<Answer> {
  return browser.post('/enroll/webauthn/start', { pass }, { address: newAddress() });
}

/** Completes an enrollment that {@link startWith} began. */
export function completeWith(
  { baseUrl }: Pick<TestApp, 'baseUrl'>,
  browser: Client,
  key: SoftwareKey,
  started: Answer,
): Promise<Answer> {
  const { state, publicKey } = started.json;
  const credential = key.create(publicKey, baseUrl);
  const body = { state, credential };
  return browser.post('/enroll/webauthn/complete', body, { address: newAddress() });
}

/**
 * Enrolls a key with a re-enrollment pass or without one. Returns the response that refused it, or
 * that of the last step.
 */
export async function enrollWith(
  app: Pick<TestApp, 'baseUrl'>,
  browser: Client,
  key: SoftwareKey,
  pass?: string,
): Promise<Answer> {
  const started = await startWith(browser, pass);
  return started.status === 200 ? completeWith(app, browser, key, started) : started;
}

/** Signs a user in at the identity provider, and returns the new browser. */
export async function signedIn(app: TestApp, email: string): Promise<Client> {
  const browser = app.client();
  await browser.signIn(email);
  return browser;
}
