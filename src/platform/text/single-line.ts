/** What has no place in a line of text: control characters, halves of surrogate pairs, and what turns its direction. */
const NOT_IN_A_LINE = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** Whether a text is one clean line: one PostgreSQL can store, a log can hold and a page shows as it is written. */
export function isSingleLine(text: string): boolean {
  return text.search(NOT_IN_A_LINE) < 0;
}

/** Replaces everything in a text that has no place in a line by spaces. */
export function withoutControls(text: string): string {
  return isSingleLine(text) ? text : text.replaceAll(NOT_IN_A_LINE, ' ');
}

/** A text from elsewhere as one clean line of at most so many characters; null when nothing is left. */
export function toSingleLine(text: string, limit: number): string | null {
  const clean = withoutControls(text).trim();
  return Array.from(clean).slice(0, limit).join('') || null;
}
