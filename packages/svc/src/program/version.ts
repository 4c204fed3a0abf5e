/** The version of the command. The bundler writes it: see `rolldown.config.js`. */
declare const SVC_VERSION: string | undefined;

/** Returns the version of the command; 0.0.0 if it runs from the sources. */
export function version(): string {
  return typeof SVC_VERSION === 'string' ? SVC_VERSION : '0.0.0';
}

/** Matches a version, such as 0.14.0 or 0.14.0-rc.1. */
const VERSION = /^(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:-rc\.(\d{1,6}))?$/;

/**
 * Returns the numbers of a version; undefined for a text that is no version. The fourth number is
 * that of the release candidate. It is infinite for a release, which is later than its candidates.
 */
function numbersOf(text: string): readonly [number, number, number, number] | undefined {
  const found = VERSION.exec(text);
  if (!found) return undefined;
  const [major = 0, minor = 0, patch = 0] = found.slice(1, 4).map(Number);
  return [major, minor, patch, found[4] === undefined ? Infinity : Number(found[4])];
}

/**
 * Compares two versions. The result is negative if the first version is older, positive if it is
 * newer, and 0 if both are equal. It is NaN if one of the texts is no version.
 */
export function compareVersions(one: string, other: string): number {
  const [left, right] = [numbersOf(one), numbersOf(other)];
  if (!left || !right) return Number.NaN;
  const place = left.findIndex((number, index) => number !== right[index]);
  return place < 0 ? 0 : (left[place] ?? 0) < (right[place] ?? 0) ? -1 : 1;
}

/** Returns true if a version is at least two minor versions, or a major one, ahead of another. */
export function isFarAhead(ahead: string, own: string): boolean {
  const [left, right] = [numbersOf(ahead), numbersOf(own)];
  if (!left || !right) return false;
  return left[0] > right[0] || (left[0] === right[0] && left[1] - right[1] >= 2);
}

/** The oldest version of Node on which the command runs. */
export const OLDEST_NODE = 20;
