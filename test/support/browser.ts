import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
} from 'playwright-core';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { newAddress } from './client.js';
import { findProgram } from './programs.js';
import { makeTlsAuthority } from './tls-authority.js';

/**
 * The browser of this worker process of vitest. The test files of the worker use it one after the
 * other, because a start costs more than most of their tests. It ends with the worker.
 */
let shared: Browser | undefined;

/**
 * Returns the machine's Chromium without a window. Profiles share nothing, so a test file sees no
 * cookie or page of an earlier file. `close` closes all profiles, and leaves the browser running
 * for the next file. A test file that calls this function needs `requires('chromium')`.
 *
 * `chromium-headless-shell` is preferred, because it is the same engine and needs half of the CPU
 * time.
 */
export async function startBrowser(): Promise<Browser> {
  const program = findProgram('chromium-headless-shell') ?? findProgram('chromium');
  if (program === undefined) throw new Error('chromium is not installed');
  const browser = shared?.isConnected() === true ? shared : await launch(program);
  shared = browser;
  const close = async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
  };
  return new Proxy(browser, {
    get(target, name) {
      if (name === 'close') return close;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/**
 * The host of the OAuth clients to which the service redirects. {@link startClients} answers for
 * it.
 */
const CLIENT_HOST = 'client.example';

/**
 * Starts a server for {@link CLIENT_HOST} that answers each request with a text. Playwright cannot
 * do that itself, because it cannot answer a request that follows a redirect of a form.
 *
 * @returns the port of the server
 */
async function startClients(): Promise<number> {
  const { key, cert } = makeTlsAuthority('Applications', [CLIENT_HOST]);
  const server = createServer({ key, cert }, (_, response) => response.end('at the client'));
  server.listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function launch(executablePath: string): Promise<Browser> {
  const port = await startClients();
  return chromium.launch({
    executablePath,
    headless: true,
    timeout: 120_000,
    // Playwright turns this cache off, but ordinary browsers have it.
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
    chromiumSandbox: process.getuid?.() !== 0, // Chromium's sandbox refuses root
    args: [
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--renderer-process-limit=1', // starts no process in advance
      '--in-process-gpu',
      '--disable-gpu-compositing',
      '--disable-threaded-animation',
      '--num-raster-threads=1',
      `--host-resolver-rules=MAP ${CLIENT_HOST} 127.0.0.1:${port}`,
    ],
  });
}

/**
 * The functions that replace those of `navigator.credentials`. `create` and `get` may be of two
 * different keys.
 */
export type PluggedKey = Pick<SoftwareKey, 'create' | 'get'>;

/** A page in a new browser profile, and every error of the profile's pages. */
export interface BrowserProfile {
  readonly page: Page;
  /**
   * Console errors, uncaught exceptions and violations of the Content-Security-Policy, in order.
   */
  readonly pageErrors: string[];
  /** Makes `navigator.credentials` call a software key on every page that is opened later. */
  plugIn(key: PluggedKey): Promise<void>;
  /**
   * Gives the profile another client IP address, and so new rate limits. A test file calls it
   * between two tests.
   */
  move(): Promise<void>;
  /** Closes the profile and deletes its cookies. */
  leave(): Promise<void>;
}

/**
 * Opens a new browser profile with an IP address of its own. Relative URLs are those of `baseUrl`.
 */
export async function openProfile(
  browser: Browser,
  baseUrl: string,
  options: Pick<BrowserContextOptions, 'proxy' | 'viewport' | 'deviceScaleFactor'> = {},
): Promise<BrowserProfile> {
  const fromNewAddress = () => ({ 'x-forwarded-for': newAddress() });
  const context = await browser.newContext({
    ...options,
    baseURL: baseUrl,
    extraHTTPHeaders: fromNewAddress(),
    // Chromium does not trust the authorities that issue the certificates of the tests.
    ignoreHTTPSErrors: true,
  });
  // This is less than the time limit of a test, so that the error names the step that hangs.
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const pageErrors: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') pageErrors.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => pageErrors.push(`uncaught: ${error.message}`));
  await context.exposeFunction('reportViolation', (violation: string) =>
    pageErrors.push(`policy: ${violation}`),
  );
  await context.addInitScript(`
    addEventListener('securitypolicyviolation', (event) => {
      reportViolation(event.violatedDirective + ' ' + event.blockedURI);
    });
  `);
  return {
    page,
    pageErrors,
    plugIn: (key) => plugIn(context, key, baseUrl),
    move: () => context.setExtraHTTPHeaders(fromNewAddress()),
    leave: () => context.close(),
  };
}

/**
 * Makes `navigator.credentials` of each page call a software key in this process. A script in the
 * page converts bytes to base64url.
 */
async function plugIn(context: BrowserContext, key: PluggedKey, origin: string): Promise<void> {
  type Options<Ceremony extends 'create' | 'get'> = Parameters<SoftwareKey[Ceremony]>[0];
  await context.exposeFunction('createWithKey', (json: Options<'create'>) =>
    key.create({ ...json, excludeCredentials: json.excludeCredentials ?? [] }, origin),
  );
  await context.exposeFunction('getWithKey', (json: Options<'get'>) =>
    key.get({ ...json, allowCredentials: json.allowCredentials ?? [] }, origin),
  );
  await context.addInitScript(`
    const toJSON = (value) => {
      if (value instanceof ArrayBuffer) return new Uint8Array(value).toBase64({ alphabet: 'base64url', omitPadding: true });
      if (ArrayBuffer.isView(value)) return toJSON(value.buffer);
      if (Array.isArray(value)) return value.map(toJSON);
      if (value === null || typeof value !== 'object') return value;
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, toJSON(inner)]));
    };
    const answer = async (ask, { publicKey }) => {
      const credential = await ask(toJSON(publicKey));
      return { toJSON: () => credential };
    };
    Object.defineProperty(navigator, 'credentials', {
      value: {
        create: (options) => answer(createWithKey, options),
        get: (options) => answer(getWithKey, options),
      },
    });
  `);
}
