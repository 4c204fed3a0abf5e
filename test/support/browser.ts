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
 * Returns the machine's Chromium without a window. A test file that calls it runs under
 * `requires('chromium')`. Profiles share nothing, so that a test file sees no cookie or page of an
 * earlier one. `close` closes the profiles, and leaves the program running for the next file.
 *
 * If `chromium-headless-shell` is installed, it is used, because it is the same engine and needs
 * half of the CPU time.
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
 * The host of the client applications to which the service redirects. It answers each request with
 * a text.
 */
const CLIENT_HOST = 'client.example';

/**
 * Starts a server for the applications at {@link CLIENT_HOST}. A real server is needed, because
 * Playwright cannot answer a request to which the response of a form redirects.
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
    // ordinary browsers have this cache, and Playwright turns it off
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
    chromiumSandbox: process.getuid?.() !== 0, // Chromium's sandbox refuses root
    args: [
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--renderer-process-limit=1', // starts no process in advance for a site that no test opens
      '--in-process-gpu',
      '--disable-gpu-compositing',
      '--disable-threaded-animation',
      '--num-raster-threads=1',
      `--host-resolver-rules=MAP ${CLIENT_HOST} 127.0.0.1:${port}`,
    ],
  });
}

/**
 * The functions that `navigator.credentials` calls in the page. Both may be of one security key, or
 * `create` of one key and `get` of another.
 */
export type PluggedKey = Pick<SoftwareKey, 'create' | 'get'>;

/** A page in an own browser profile, and every error that its pages reported. */
export interface BrowserProfile {
  readonly page: Page;
  /**
   * Console errors, uncaught exceptions and violations of the Content-Security-Policy, in order.
   */
  readonly pageErrors: string[];
  /** Makes `navigator.credentials` call a software key on every page that is opened later. */
  plugIn(key: PluggedKey): Promise<void>;
  /**
   * Gives the profile another client address, which has rate limits of its own. A test file calls
   * it before each further test, because each test stands for another visit.
   */
  move(): Promise<void>;
  /** Closes the profile and deletes its cookies. */
  leave(): Promise<void>;
}

/** Opens a new browser profile on an origin, with its own client address. */
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
    // the certificates are issued by authorities of the tests, which Chromium does not trust
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
