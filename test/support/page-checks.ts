import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page, Request } from 'playwright-core';
import { expect } from 'vitest';
import type { BrowserProfile } from './browser.js';
import { CheckedKinds } from './checked-kinds.js';
import { elementKinds } from './element-kinds.js';
import { SCALE } from './scale.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The names by which axe-core knows the rules of WCAG 2.2, levels A and AA. */
const WCAG_22_AA = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** The sizes of the windows in which every page is checked, in CSS pixels. */
const SCREENS = {
  narrow: { width: 320, height: 640 },
  phone: { width: 390, height: 844 },
  desktop: { width: 1280, height: 800 },
} as const;

/** The largest number of bytes of a page together with its scripts, style sheets and images. */
const LARGEST_PAGE = 60 * 1024;

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { html: string }[];
  }[];
}

/**
 * Runs axe-core on the open page.
 *
 * @param rules the names of the rules, by default all of WCAG 2.2 AA
 * @returns each violation, with the first element that has it
 */
export async function accessibilityViolations(
  page: Page,
  rules?: readonly string[],
): Promise<string[]> {
  // Playwright runs the script by the inspector of the browser, to which the
  // Content-Security-Policy of the page does not apply.
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(AXE);
  const runOnly =
    rules === undefined ? { type: 'tag', values: WCAG_22_AA } : { type: 'rule', values: rules };
  const options = { runOnly, resultTypes: ['violations'] };
  const { violations } = await page.evaluate<AxeResult>(`axe.run(${JSON.stringify(options)})`);
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

/** Returns the elements that are wider than the window, because they make it scroll sideways. */
export function overflowing(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    return [...document.querySelectorAll('body *')]
      .filter((element) => element.getBoundingClientRect().right > width + 1)
      .map((element) => element.outerHTML.slice(0, 120));
  })()`);
}

const isFullScale = SCALE === 'full';

/** The windows and color schemes in which every page is shown at full scale. */
const LOOKS = Object.values(SCREENS).flatMap((size) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ size, colorScheme })),
);

/**
 * The windows and color schemes in which `npm test` shows every page. It is one color scheme for
 * each window, because `npm test` must be quick.
 */
const SMALL_LOOKS = [
  { size: SCREENS.narrow, colorScheme: 'light' },
  { size: SCREENS.phone, colorScheme: 'light' },
  { size: SCREENS.desktop, colorScheme: 'dark' },
] as const;

/**
 * The axe-core rules whose results depend on the window and the color scheme: the contrast of
 * colors, and the size of targets for a finger. All other rules depend only on the elements of the
 * page.
 */
const RULES_OF_LOOKS = ['color-contrast', 'link-in-text-block', 'target-size'];

/**
 * Checks that a page has no violation of WCAG 2.2 AA, no scrolling sideways, and at most 60 KB in
 * all. It must also cause no error of the console or the Content-Security-Policy, and no request to
 * another origin.
 *
 * At full scale, it loads the page in each of the {@link LOOKS}, and applies every rule. Otherwise
 * it loads the page once. Then it applies rules only if the page has a kind of element that no
 * earlier page had. Each check uses a new client IP address, because many checks would exceed its
 * rate limits.
 *
 * @param profile a profile whose session may open the page
 * @param path the path of the page
 * @param ready waits until the page shows what the test is about
 */
export async function checkPage(
  profile: BrowserProfile,
  path: string,
  ready: (page: Page) => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  const { page } = profile;
  await profile.move();
  const traffic = recordTraffic(page);
  for (const { size, colorScheme } of isFullScale ? LOOKS : LOOKS.slice(0, 1)) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme });
    traffic.start();
    const response = await page.goto(path);
    const where = `${path}, ${size.width} pixels, ${colorScheme}`;
    expect(response?.status(), where).toBe(200);
    await traffic.settled();
    await ready(page);
    if (isFullScale) await checkLook(page, where);
    else await checkOpenPage(profile);
    expect(traffic.foreign(), where).toEqual([]);
    expect(await traffic.bytes(), where).toBeLessThan(LARGEST_PAGE);
  }
  traffic.stop();
  expect(profile.pageErrors).toEqual([]);
}

/**
 * Checks the open page without loading it again, otherwise as {@link checkPage} does. The last page
 * of a flow needs it, because it cannot be opened a second time.
 */
export async function checkOpenPage({ page, pageErrors }: BrowserProfile): Promise<void> {
  if (isFullScale) {
    for (const look of LOOKS) await checkLook(page, await showIn(look, page));
  } else await checkNewKinds(page);
  expect(pageErrors).toEqual([]);
}

const checkedKinds = new CheckedKinds();

/**
 * Checks in each window that the open page does not scroll sideways. If the page has a new kind of
 * element, it also applies every rule once, and {@link RULES_OF_LOOKS} in dark colors. Otherwise
 * the rules would find nothing new.
 */
async function checkNewKinds(page: Page): Promise<void> {
  const kinds = await elementKinds(page);
  const hasNew = checkedKinds.lack(kinds);
  for (const [index, look] of SMALL_LOOKS.entries()) {
    const where = await showIn(look, page);
    if (hasNew && index === 0) expect(await accessibilityViolations(page), where).toEqual([]);
    if (hasNew && look.colorScheme === 'dark') {
      expect(await accessibilityViolations(page, RULES_OF_LOOKS), where).toEqual([]);
    }
    expect(await overflowing(page), where).toEqual([]);
  }
  checkedKinds.add(kinds);
}

/**
 * Shows the open page in a window size and a color scheme.
 *
 * @returns a text with the URL, the width and the color scheme
 */
async function showIn({ size, colorScheme }: (typeof LOOKS)[number], page: Page): Promise<string> {
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme });
  return `${page.url()}, ${size.width} pixels, ${colorScheme}`;
}

/**
 * Checks the open page on the present screen: no violation of WCAG 2.2 AA, and no scrolling
 * sideways.
 */
async function checkLook(page: Page, where: string): Promise<void> {
  expect(await accessibilityViolations(page), where).toEqual([]);
  expect(await overflowing(page), where).toEqual([]);
}

/** Records the requests of a page: their URLs, and the bytes of the responses. */
function recordTraffic(page: Page) {
  let sizes: Promise<number>[] = [];
  let addresses: string[] = [];
  const open = new Set<Request>();
  const onRequest = (request: Request) => {
    open.add(request);
    addresses.push(request.url());
  };
  const onFailed = (request: Request) => open.delete(request);
  const onFinished = (request: Request) => {
    open.delete(request);
    const size = request.sizes().then((each) => each.responseBodySize + each.responseHeadersSize);
    sizes.push(size.catch(() => 0));
  };
  page.on('request', onRequest);
  page.on('requestfinished', onFinished);
  page.on('requestfailed', onFailed);
  return {
    start: () => {
      open.clear();
      sizes = [];
      addresses = [];
    },
    stop: () => {
      page.off('request', onRequest);
      page.off('requestfinished', onFinished);
      page.off('requestfailed', onFailed);
    },
    /** Resolves when no response is open and the page has been drawn. */
    settled: async () => {
      do {
        await expect.poll(() => open.size, { interval: 10 }).toBe(0);
        await page.evaluate(
          'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))',
        );
      } while (open.size > 0);
    },
    foreign: () => {
      const own = new URL(page.url()).origin;
      return addresses.filter((address) => new URL(address).origin !== own);
    },
    bytes: async () => (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0),
  };
}

/**
 * Presses the Tab key until the focus is on an element, as a user without a mouse does.
 *
 * @param selects a CSS selector of the element
 * @returns the number of key presses
 * @throws Error if 200 presses do not reach the element
 */
export async function tabTo(page: Page, selects: string): Promise<number> {
  for (let pressed = 1; pressed <= 200; pressed += 1) {
    await page.keyboard.press('Tab');
    const isThere = await page.evaluate<boolean>(
      `document.activeElement?.matches(${JSON.stringify(selects)}) === true`,
    );
    if (isThere) return pressed;
  }
  throw new Error(`the Tab key does not reach ${selects}`);
}
