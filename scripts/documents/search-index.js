// The build and the server split texts by the same function. Node runs its TypeScript without a
// compiler.
import { termsOf } from '../../src/features/pages/documents/manual/terms.ts';

/** The characters of the beginning of a section that the search shows. */
const OPENING = 180;

/** How many times a term counts in the heading of the section, in the title, or in a name. */
const IN_HEADING = 4;
const IN_TITLE = 3;
const IN_NAME = 2;

/**
 * The parameters k1 and b of BM25, a formula that ranks search results. k1 says how little a
 * repetition of a term adds, and b how much a long section loses.
 */
const SATURATION = 1.2;
const LENGTH = 0.4;

/**
 * Pages about the inside of the service. They have the words of most questions, and few answers for
 * people who use it, so their weights are lower.
 */
const INSIDE = /^\/docs\/(?:architecture|choices|decisions|performance|security-model|conformance)/;
const SHARE_OF_INSIDE = 0.7;

/** The factor of the weights before they are rounded to the whole numbers of the index. */
const SCALE = 100;

/**
 * Makes the index of the search: for each term the sections that have it, with the weight of the
 * term in each by BM25.
 *
 * @param {{ page: string, title: string, anchor: string, heading: string, text: string, names:
 *   string }[]} sections the sections of all pages, with the URL path of their page
 */
export function searchIndexOf(sections) {
  const counted = sections.map(countedTerms);
  const average = counted.reduce((sum, { length }) => sum + length, 0) / counted.length;
  const postings = new Map();
  for (const [at, { counts, length }] of counted.entries()) {
    const long = 1 - LENGTH + (LENGTH * length) / average;
    const share = INSIDE.test(sections[at].page) ? SHARE_OF_INSIDE : 1;
    for (const [term, count] of counts) {
      const weight = (share * count * (SATURATION + 1)) / (count + SATURATION * long);
      if (!postings.has(term)) postings.set(term, []);
      postings.get(term).push([at, weight]);
    }
  }
  const terms = [...postings].map(([term, pairs]) => {
    const rarity = Math.log(1 + (sections.length - pairs.length + 0.5) / (pairs.length + 0.5));
    return [term, pairs.flatMap(([at, weight]) => [at, Math.round(SCALE * rarity * weight)])];
  });
  return {
    sections: sections.map(shownSection),
    terms: Object.fromEntries(terms.toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** Returns what the search shows of a section. */
function shownSection({ page, anchor, title, heading, text }) {
  return { page, anchor, title, heading, opening: openingOf(text) };
}

function countedTerms({ title, heading, text, names }) {
  const counts = new Map();
  const add = (words, times) => {
    for (const term of words) counts.set(term, (counts.get(term) ?? 0) + times);
  };
  const inText = termsOf(text);
  add(inText, 1);
  add(termsOf(heading), IN_HEADING);
  add(termsOf(title), IN_TITLE);
  add(termsOf(names), IN_NAME);
  return { counts, length: inText.length };
}

function openingOf(text) {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  if (line.length <= OPENING) return line;
  return `${line.slice(0, line.lastIndexOf(' ', OPENING))} …`;
}
