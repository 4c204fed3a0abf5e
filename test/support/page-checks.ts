import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page, Request } from 'playwright-core';
import { expect } from 'vitest';
import type { BrowserProfile } from './browser.js';
import { CheckedKinds } from './checked-kinds.js';
import { elementKinds } from './element-kinds.js';
import { SCALE } from './scale.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules of WCAG 2.2, levels A and AA. */
const WCAG_22_AA = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** The sizes of the screens on which every page is checked, in CSS pixels. */
const SCREENS = {
  narrow: { width: 320, height: 640 },
  phone: { width: 390, height: 844 },
  desktop: { width: 1280, height: 800 },
} as const;

/** The largest size in bytes of a page together with its scripts and style sheets. */
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

/** Returns the elements that are wider than the screen, which then scrolls sideways. */
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

/**
 * The ways in which every page is shown at full scale: on each screen, in light and in dark colors.
 */
const LOOKS = Object.values(SCREENS).flatMap((size) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ size, colorScheme })),
);

/**
 * The ways in which `npm test` shows every page, which must be quick: on each screen once, and on
 * the last one in dark colors.
 */
const SMALL_LOOKS = [
  { size: SCREENS.narrow, colorScheme: 'light' },
  { size: SCREENS.phone, colorScheme: 'light' },
  { size: SCREENS.desktop, colorScheme: 'dark' },
] as const;

/**
 * The rules that measure: the contrast of colors, and the size of targets for a finger. Their
 * results can differ between the {@link LOOKS} of a page. All other rules read only the elements,
 * which are the same on every screen.
 */
const RULES_OF_LOOKS = ['color-contrast', 'link-in-text-block', 'target-size'];

/**
 * Checks a page on a narrow screen, a phone and a desktop, light and dark: no violation of WCAG 2.2
 * AA, no scrolling sideways, no error of the console or of the Content-Security-Policy, no request
 * to another origin, and at most 60 KB in all. At full scale the page is loaded in each of these
 * six {@link LOOKS} and checked by every rule. Otherwise it is loaded once, and checked by the
 * rules only if it has a kind of element that no page had before. Each check comes from a new
 * client address, so that many checks in a short time stay below the rate limits.
 *
 * @param profile a profile whose session may open the page
 * @param path the path of the page
 * @param ready waits until the page shows what the check is about
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
 * Checks the open page as {@link checkPage} does, without loading it again. It is for the last page
 * of a flow, which cannot be opened a second time.
 */
export async function checkOpenPage({ page, pageErrors }: BrowserProfile): Promise<void> {
  if (isFullScale) {
    for (const look of LOOKS) await checkLook(page, await showIn(look, page));
  } else await checkNewKinds(page);
  expect(pageErrors).toEqual([]);
}

const checkedKinds = new CheckedKinds();

/**
 * Checks on each screen that the open page does not scroll sideways. A page with a new kind of
 * element is also checked by the rules: by every rule in light, and by the rules that measure in
 * dark. For other pages the rules are left out, because they would find nothing new.
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
 * Shows the open page in one of the {@link LOOKS}.
 * @returns a text that names the page and the look
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

/** Records the requests of a page, the bytes that it loads, and the addresses of other origins. */
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
    /** Resolves when the loaded page waits for no response and has drawn its content. */
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
 * Moves the focus by the Tab key until it is on an element, as a user without a mouse does.
 *
 * @param selects a CSS selector of the wanted element
 * @returns the number of keys that were pressed
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
