import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type EnrolledUser, type TestApp } from './app.js';
import { openProfile, startBrowser, type BrowserProfile } from './browser.js';
import type { Client } from './client.js';
import { tabTo } from './page-checks.js';

/**
 * A text that attacks a page: markup, a change of text direction, and no place for a line break.
 */
export const HOSTILE = `<img src=x onerror=alert(1)>"'&\u202e\u2066${'W'.repeat(10_000)}`;

/** A user with a session and a key. */
interface KeyHolder {
  readonly client: Client;
  readonly key: SoftwareKey;
}

/** Opens a browser profile with the session of a user, whose key is plugged in. */
export async function openAs(
  browser: Browser,
  app: Pick<TestApp, 'baseUrl'>,
  user: KeyHolder,
): Promise<BrowserProfile> {
  const profile = await openProfile(browser, app.baseUrl);
  await enterAs(profile, app, user);
  return profile;
}

/** Gives an open profile the session of a user, and plugs in the key. */
export async function enterAs(
  profile: BrowserProfile,
  app: Pick<TestApp, 'baseUrl'>,
  { client, key }: KeyHolder,
): Promise<void> {
  await profile.plugIn(key);
  await profile.page.context().addCookies([sessionCookie(app, client)]);
}

/** The admin of an organization of its own, with a browser that has the session and the key. */
export interface ConsoleAdmin extends EnrolledUser {
  /** The domain of the organization. */
  readonly domain: string;
  readonly email: string;
  readonly profile: BrowserProfile;
}

/**
 * What the tests of pages of the console share. `app` and `browser` are there once the tests run.
 */
export interface ConsoleSetUp {
  readonly app: TestApp;
  readonly browser: Browser;
  /** Founds an organization, and opens a browser as its admin. */
  newAdmin(): Promise<ConsoleAdmin>;
}

/**
 * Starts the service and Chromium for the tests of a `describe`, and stops both after them.
 *
 * @param name a part of the domain of each organization that the tests found
 * @param start starts the service
 */
export function consoleSetUp(
  name: string,
  start: () => Promise<TestApp> = startTestApp,
): ConsoleSetUp {
  let app: TestApp;
  let browser: Browser;
  let organizations = 0;
  beforeAll(async () => {
    app = await start();
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });
  return {
    get app() {
      return app;
    },
    get browser() {
      return browser;
    },
    async newAdmin() {
      organizations += 1;
      const domain = `${name}-${organizations}.example`;
      const email = `ada@${domain}`;
      const admin = await app.enrolled(email);
      return { ...admin, domain, email, profile: await openAs(browser, app, admin) };
    },
  };
}

/** Opens a page in a browser without JavaScript, with the session of a user. */
export async function openWithoutScripts(
  browser: Browser,
  app: Pick<TestApp, 'baseUrl'>,
  client: Client,
): Promise<Page> {
  const context = await browser.newContext({
    baseURL: app.baseUrl,
    javaScriptEnabled: false,
    extraHTTPHeaders: { 'x-forwarded-for': client.address },
  });
  await context.addCookies([sessionCookie(app, client)]);
  return context.newPage();
}

function sessionCookie({ baseUrl }: Pick<TestApp, 'baseUrl'>, client: Client) {
  const value = client.cookie('svc_session');
  if (value === undefined) throw new Error('the client has no session');
  return { name: 'svc_session', value, url: baseUrl };
}

/**
 * Walks through pages with the keyboard alone, on a telephone of 390 pixels, and counts the steps.
 */
export class KeyboardWalk {
  /** Each step in words. */
  readonly steps: string[] = [];
  #keys = 0;

  private constructor(readonly page: Page) {}

  static async begin(page: Page, path: string): Promise<KeyboardWalk> {
    await page.setViewportSize({ width: 390, height: 844 });
    const walk = new KeyboardWalk(page);
    await page.goto(path);
    walk.steps.push(`open ${path}`);
    return walk;
  }

  /** Moves to a field, replaces its text, and stays there. */
  async fill(selector: string, text: string): Promise<void> {
    this.#keys += await tabTo(this.page, selector);
    await this.page.keyboard.press('Control+A');
    await this.page.keyboard.type(text);
    this.#keys += text.length + 1;
    this.steps.push(`fill ${selector}`);
  }

  /** Moves to a link, a button, a choice or a disclosure, and uses it. */
  async press(selector: string, key: 'Enter' | 'Space' | 'ArrowDown' = 'Enter'): Promise<void> {
    this.#keys += await tabTo(this.page, selector);
    await this.page.keyboard.press(key);
    this.#keys += 1;
    this.steps.push(`press ${selector}`);
  }

  /** Moves to a list of choices and chooses by typing. */
  async choose(selector: string, text: string): Promise<void> {
    this.#keys += await tabTo(this.page, selector);
    await this.page.keyboard.type(text);
    this.#keys += text.length;
    this.steps.push(`choose ${text}`);
  }

  /** Prints the steps of a job. */
  print(job: string): void {
    const { length } = this.steps;
    // oxlint-disable-next-line no-console -- the counts are the result of the test
    console.log(`${job}: ${length} steps, ${this.#keys} keys\n  ${this.steps.join('\n  ')}`);
  }
}
