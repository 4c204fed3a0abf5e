/** Words that stand in most questions and say nothing about their subject. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    'a about after all also am an and any are as at be because been before but by can cannot could ' +
    'did do does doing dont for from get gets getting give given go got had has have how i if in ' +
    'into is isnt it its let make makes may me mean means must my need no not of on one or our out should so ' +
    'than that the their them then there they this to up us use used using want was we were what ' +
    'when where which while who why will with without would you your'
  ).split(' '),
);

/**
 * Splits a text into the terms by which the documents are searched: words in lower case, without
 * stop words and without their English endings. A name such as `svc_scim_tokens` is a term, and so
 * is each of its parts. The build makes the index with the same function.
 */
export function termsOf(text: string): string[] {
  const words =
    text
      .toLowerCase()
      .replaceAll(/['’]/g, '')
      .match(/[\p{L}\p{N}_]+/gu) ?? [];
  return words
    .flatMap((word) => (word.includes('_') ? [word, ...word.split('_')] : [word]))
    .filter((word) => word.length > 1 && !STOP_WORDS.has(word))
    .map((word) => (/^[a-z]+$/.test(word) ? withoutEnding(word) : word));
}

/**
 * Removes the ending of an English word, so that `rotates`, `rotated`, `rotating` and `rotation`
 * are one term. The result need not be a word.
 */
function withoutEnding(word: string): string {
  const singular = word.replace(/ies$/, 'y').replace(/(?<=[^siu])s$/, '');
  const stem = singular.replace(/(?<=\w{3})(?:ing|ed|(?<=[st])ion)$/, '');
  return stem.replace(/(?<=\w{3})e$/, '').replace(/([^aeiou])\1$/, '$1');
}
