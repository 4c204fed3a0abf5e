/** Words that other programs use for a command of this one. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  auth: 'login',
  signin: 'login',
  'sign-in': 'login',
  signout: 'logout',
  'sign-out': 'logout',
  whoami: 'status',
  info: 'status',
  init: 'setup',
  config: 'setup',
  key: 'keys',
  upgrade: 'update',
  'self-update': 'update',
};

/** The smallest number of letters at which the beginning of a word stands for the whole word. */
const SHORTEST_START = 3;

/**
 * Returns the word that a mistyped word most likely means; undefined if none is close. A word is
 * close if it begins with the typed letters, if one or two letters differ, or if other programs use
 * the typed word for it.
 */
export function nearestWord(typed: string, words: readonly string[]): string | undefined {
  const text = typed.toLowerCase();
  const other = Object.hasOwn(OTHER_WORDS, text) ? OTHER_WORDS[text] : undefined;
  if (other !== undefined && words.includes(other)) return other;
  const starting = words.filter((word) => text.length >= SHORTEST_START && word.startsWith(text));
  if (starting.length === 1) return starting[0];
  const most = text.length > 4 ? 2 : 1;
  const [nearest] = words
    .map((word) => ({ word, distance: editDistance(text, word) }))
    .filter(({ word, distance }) => distance <= most && distance < word.length)
    .toSorted((a, b) => a.distance - b.distance);
  return nearest?.word;
}

/**
 * Returns a message about a mistyped word, with the word that it most likely means.
 *
 * @param before stands before the word, such as `--` of an option
 */
export function withNearestWord(
  message: string,
  typed: string,
  words: readonly string[],
  before = '',
): string {
  const word = nearestWord(typed, words);
  if (word === undefined) return message;
  return `${message.replace(/\.$/, '')}. Did you mean ${before}${word}?`;
}

/**
 * Counts the changes that turn one word into the other. A change inserts, removes or replaces a
 * letter, or swaps it with the next letter.
 */
function editDistance(one: string, other: string): number {
  let [earlier, last]: number[][] = [[], Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwapped =
        i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row[j] = Math.min(
        at(last, j) + 1,
        at(row, j - 1) + 1,
        at(last, j - 1) + (isSame ? 0 : 1),
        isSwapped ? at(earlier, j - 2) + 1 : Infinity,
      );
    }
    [earlier, last] = [last ?? [], row];
  }
  return at(last, other.length);
}

const at = (row: readonly number[] | undefined, index: number) => row?.[index] ?? Infinity;
