import { termsOf } from './terms.js';

/** A part of a page below one heading, as the search shows it. */
interface IndexedSection {
  /** The path of the page, such as `/docs/guides/backup`. */
  readonly page: string;
  /** The id of the heading in the page; empty for the text below the title. */
  readonly anchor: string;
  readonly title: string;
  readonly heading: string;
  /** The first words of the section. */
  readonly opening: string;
}

/** The index of the documents, which the build makes (`scripts/documents/search-index.js`). */
export interface SearchIndex {
  readonly sections: readonly IndexedSection[];
  /**
   * The sections that have each term. A value is a flat list of pairs: the position of a section in
   * `sections`, and the weight of the term in this section.
   */
  readonly terms: Readonly<Record<string, readonly number[]>>;
}

/** A page that a search found, with its section that fits best. */
export interface FoundPage extends Omit<IndexedSection, 'page' | 'anchor'> {
  readonly href: string;
}

/**
 * The weight of the second-best section of a page in the score of the page. The best section has
 * the weight 1.
 */
const SECOND = 0.25;

/** The most terms of a question that are looked up. */
const MOST_TERMS = 24;

/**
 * Finds the pages that fit a question, the best first, each once.
 *
 * @param question words in any order; nothing is found if all of them are stop words
 * @param limit the most pages
 */
export function searchPages(index: SearchIndex, question: string, limit: number): FoundPage[] {
  const bySection = scoresOf(index, wantedTerms(index, question));
  const byPage = Map.groupBy(bySection.entries(), ([at]) => index.sections[at]?.page ?? '');
  return [...byPage.values()]
    .map((scores) => scores.toSorted(([, a], [, b]) => b - a))
    .map((scores) => ({
      best: scores[0]?.[0] ?? 0,
      score: (scores[0]?.[1] ?? 0) + SECOND * (scores[1]?.[1] ?? 0),
    }))
    .toSorted((a, b) => b.score - a.score)
    .slice(0, limit)
    .flatMap(({ best }) => {
      const section = index.sections[best];
      return section ? [found(section)] : [];
    });
}

/**
 * Returns the terms of a question. A name with underscores that the index knows, such as
 * `SVC_DATABASE_URL`, stays one term.
 */
function wantedTerms({ terms }: SearchIndex, question: string): string[] {
  const names = question.match(/\w+_\w+/g) ?? [];
  const known = names.filter((name) => Object.hasOwn(terms, name.toLowerCase()));
  const rest = known.reduce((text, name) => text.replaceAll(name, ' '), question);
  const wanted = [...known.map((name) => name.toLowerCase()), ...termsOf(rest)];
  return [...new Set(wanted)].slice(0, MOST_TERMS);
}

/**
 * Returns the score of each section that has at least one of the terms, by the position of the
 * section in the index. The more of the terms a section has, the higher is the factor of its score.
 * So a section with all terms usually comes before a section that has a single term often.
 */
function scoresOf({ terms }: SearchIndex, wanted: readonly string[]): Map<number, number> {
  const sums = new Map<number, { weight: number; count: number }>();
  for (const term of wanted.filter((one) => Object.hasOwn(terms, one))) {
    const pairs = terms[term] ?? [];
    for (let at = 0; at < pairs.length; at += 2) {
      const { weight, count } = sums.get(pairs[at] ?? 0) ?? { weight: 0, count: 0 };
      sums.set(pairs[at] ?? 0, { weight: weight + (pairs[at + 1] ?? 0), count: count + 1 });
    }
  }
  return new Map(
    [...sums].map(([at, { weight, count }]) => [at, weight * (0.5 + count / (2 * wanted.length))]),
  );
}

function found({ page, anchor, title, heading, opening }: IndexedSection): FoundPage {
  return { href: anchor === '' ? page : `${page}#${anchor}`, title, heading, opening };
}
