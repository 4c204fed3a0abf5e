/**
 * Matches characters that a line must not contain: controls, halves of surrogate pairs, and changes
 * of text direction.
 */
const NOT_IN_A_LINE = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Returns true if a text is one line that PostgreSQL can store, and that logs and pages show
 * unchanged.
 */
export function isSingleLine(text: string): boolean {
  return text.search(NOT_IN_A_LINE) < 0;
}

/**
 * Matches format characters. They are invisible, so that two names can look the same and differ
 * (UTS #39 §3.1).
 */
const INVISIBLE = /\p{Cf}/u;

/** The words for an error about a text that breaks the rule of {@link isVisibleLine}. */
export const VISIBLE_LINE = 'must be one line of text, without invisible characters';

/**
 * Returns true if a text is one line without invisible characters, as the name of a thing must be.
 * The rule does not suit the names of people, because Persian and Indic scripts need invisible
 * joiners.
 */
export function isVisibleLine(text: string): boolean {
  return isSingleLine(text) && !INVISIBLE.test(text);
}

/** Replaces characters that a line must not contain by spaces. */
export function withoutControls(text: string): string {
  return isSingleLine(text) ? text : text.replaceAll(NOT_IN_A_LINE, ' ');
}

/** Cleans an external text to one line of at most `limit` characters; null if nothing is left. */
export function toSingleLine(text: string, limit: number): string | null {
  const clean = withoutControls(text).trim();
  return Array.from(clean).slice(0, limit).join('') || null;
}

/**
 * Lower-cases A to Z only. Unicode lower-casing would turn the Kelvin sign into `k`, and so one
 * name into another.
 */
export function asciiLowerCase(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Returns true if a text is a UUID of any version, in either case. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
