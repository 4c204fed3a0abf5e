import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type EnrolledUser, type TestApp } from './app.js';
import { openProfile, startBrowser, type BrowserProfile } from './browser.js';
import type { Client } from './client.js';
import { tabTo } from './page-checks.js';

/**
 * A name with which a user might attack a page. It has markup, characters that change the direction
 * of text, and a long part without a line break.
 */
export const HOSTILE = `<img src=x onerror=alert(1)>"'&\u202e\u2066${'W'.repeat(10_000)}`;

/** A user with a session and a security key. */
interface KeyHolder {
  readonly client: Client;
  readonly key: SoftwareKey;
}

/** Opens a browser profile with the session and the security key of a user. */
export async function openAs(
  browser: Browser,
  app: Pick<TestApp, 'baseUrl'>,
  user: KeyHolder,
): Promise<BrowserProfile> {
  const profile = await openProfile(browser, app.baseUrl);
  await enterAs(profile, app, user);
  return profile;
}

/** Gives an open browser profile the session and the security key of a user. */
export async function enterAs(
  profile: BrowserProfile,
  app: Pick<TestApp, 'baseUrl'>,
  { client, key }: KeyHolder,
): Promise<void> {
  await profile.plugIn(key);
  await profile.page.context().addCookies([sessionCookie(app, client)]);
}

/** The admin of a new organization, and a browser profile with the admin's session and key. */
export interface ConsoleAdmin extends EnrolledUser {
  /** The domain of the organization. */
  readonly domain: string;
  readonly email: string;
  readonly profile: BrowserProfile;
}

/**
 * The service and the browser that tests of console pages share. Both are started before the tests
 * run.
 */
export interface ConsoleSetUp {
  readonly app: TestApp;
  readonly browser: Browser;
  /** Creates an organization, and opens a browser profile as its admin. */
  newAdmin(): Promise<ConsoleAdmin>;
}

/**
 * Starts the service and Chromium for the tests of a `describe`, and stops both after the tests.
 *
 * @param name a part of the domain of each organization that the tests create
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
 * Uses pages by the keyboard alone, in a window as narrow as a telephone's. Counts the steps and
 * keys.
 */
export class KeyboardWalk {
  /** The steps so far, such as `press #save`. */
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

  /** Moves the focus to a field by the Tab key, and replaces the field's text. */
  async fill(selector: string, text: string): Promise<void> {
    this.#keys += await tabTo(this.page, selector);
    await this.page.keyboard.press('Control+A');
    await this.page.keyboard.type(text);
    this.#keys += text.length + 1;
    this.steps.push(`fill ${selector}`);
  }

  /**
   * Moves the focus to a link, button, choice or disclosure by the Tab key, and presses a key on
   * it.
   */
  async press(selector: string, key: 'Enter' | 'Space' | 'ArrowDown' = 'Enter'): Promise<void> {
    this.#keys += await tabTo(this.page, selector);
    await this.page.keyboard.press(key);
    this.#keys += 1;
    this.steps.push(`press ${selector}`);
  }

  /**
   * Moves the focus to a list of choices by the Tab key, and chooses the one that begins with a
   * text.
   */
  async choose(selector: string, text: string): Promise<void> {
    this.#keys += await tabTo(this.page, selector);
    await this.page.keyboard.type(text);
    this.#keys += text.length;
    this.steps.push(`choose ${text}`);
  }

  /** Prints the steps so far, under the name of the user's task. */
  print(job: string): void {
    const { length } = this.steps;
    // oxlint-disable-next-line no-console -- the counts are the result of the test
    console.log(`${job}: ${length} steps, ${this.#keys} keys\n  ${this.steps.join('\n  ')}`);
  }
}
