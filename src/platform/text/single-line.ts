/**
 * Matches characters that one line of text must not contain: control characters, single halves of
 * surrogate pairs, line separators, and characters that change the text direction.
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
 * Matches format characters. These characters are invisible, so two different names could look the
 * same (UTS #39 §3.1).
 */
const INVISIBLE = /\p{Cf}/u;

/** The text of the error for a text that {@link isVisibleLine} refuses. */
export const VISIBLE_LINE = 'must be one line of text, without invisible characters';

/**
 * Returns true if a text is one line without invisible characters, as the name of a thing must be.
 * Names of people are not checked by it, because Persian and Indic scripts need invisible
 * characters.
 */
export function isVisibleLine(text: string): boolean {
  return isSingleLine(text) && !INVISIBLE.test(text);
}

/** Puts a space in place of each character that one line must not contain. */
export function withoutControls(text: string): string {
  return isSingleLine(text) ? text : text.replaceAll(NOT_IN_A_LINE, ' ');
}

/**
 * Converts a text from outside to one line of at most `limit` characters. Returns null if nothing
 * is left.
 */
export function toSingleLine(text: string, limit: number): string | null {
  const clean = withoutControls(text).trim();
  return Array.from(clean).slice(0, limit).join('') || null;
}

/**
 * Converts A to Z to lower case, and leaves all other characters. Unicode lower-casing would turn
 * the Kelvin sign into `k`, and so one name into another.
 */
export function asciiLowerCase(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Returns true if a text is a UUID of any version, in either case. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
