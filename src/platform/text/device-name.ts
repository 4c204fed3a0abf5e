import { toSingleLine } from './single-line.js';

/** The device of a session or of an event, as a page shows it. */
export interface Device {
  /** The program and the system: `Firefox on Windows`, or `svc on Linux`. */
  readonly name: string;
  /** The whole `User-Agent` of the request; undefined if the name already says all of it. */
  readonly whole: string | undefined;
}

/**
 * The programs by their words in a `User-Agent`. The order decides: Edge comes before Chrome,
 * because Edge also calls itself Chrome, and Chrome before Safari for the same reason.
 */
const PROGRAMS: readonly (readonly [words: RegExp, name: string])[] = [
  [/^svc\//, 'svc'],
  [/^curl\//, 'curl'],
  [/^node$/, 'A Node.js program'],
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/(?:\bCriOS|Chrome|\bChromium)\//, 'Chrome'],
  [/\bVersion\/\S+ .*\bSafari\//, 'Safari'],
];

/**
 * The operating systems by their words in a `User-Agent`. The order decides: Android comes before
 * Linux, because Android also calls itself Linux.
 */
const SYSTEMS: readonly (readonly [words: RegExp, name: string])[] = [
  [/\b(?:iPhone|iPod)\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bWindows\b|\(win32\)/, 'Windows'],
  [/\bMacintosh\b|\(darwin\)/, 'Mac'],
  [/\bLinux\b|\(linux\)/, 'Linux'],
];

/** The largest number of characters of an unknown program's name. */
const LONGEST_NAME = 40;

/**
 * Names the device of a request by its `User-Agent`. The device chose that text, so the name is a
 * hint and proves nothing.
 */
export function deviceOf(userAgent: string | null): Device {
  if (userAgent === null || userAgent.trim() === '') return { name: 'Unknown', whole: undefined };
  const program = named(PROGRAMS, userAgent) ?? firstProduct(userAgent);
  const system = named(SYSTEMS, userAgent);
  const name = system === undefined ? program : `${program} on ${system}`;
  return { name, whole: name === userAgent ? undefined : userAgent };
}

/**
 * Names the device of an event. Returns undefined for an event without a `User-Agent`, so that a
 * page does not mention a device.
 */
export function deviceOfEvent(userAgent: string | null): Device | undefined {
  return userAgent === null ? undefined : deviceOf(userAgent);
}

function named(table: typeof PROGRAMS, userAgent: string): string | undefined {
  return table.find(([words]) => words.test(userAgent))?.[1];
}

/** Returns the first program that a `User-Agent` names, without its version (RFC 9110 §10.1.5). */
function firstProduct(userAgent: string): string {
  const [product = ''] = userAgent.trim().split(/[\s/]/, 1);
  return toSingleLine(product, LONGEST_NAME) ?? 'Unknown';
}
