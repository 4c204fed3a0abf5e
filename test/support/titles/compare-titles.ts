/**
 * A test: the path of its file, and its name, which starts with the titles of the suites around it.
 */
export interface Title {
  readonly file: string;
  readonly name: string;
}

/** One line of the list of renamed tests: the old and the new title. */
export interface Renaming {
  readonly old: string;
  readonly new: string;
}

/** The result of comparing two lists of tests. */
export interface Comparison {
  /**
   * The numbers of tests that are unchanged, are in another file, are in another suite, or have
   * another title.
   */
  readonly counts: Readonly<Record<'same' | 'moved' | 'regrouped' | 'renamed', number>>;
  readonly lost: readonly Title[];
  readonly added: readonly Title[];
}

/**
 * The text that separates a suite from the suite or test inside it in the output of `vitest list`.
 */
const STEP = ' > ';

/**
 * The ways to pair tests of the two lists. Each has the name of its count, and a function that
 * returns a test's key; tests with equal keys are a pair. The strictest way is used first.
 */
const PAIRINGS = [
  ['same', ({ file, name }: Title) => `${file}${STEP}${name}`],
  ['moved', ({ name }: Title) => name],
  ['regrouped', ({ name }: Title) => lastStep(name)],
] as const;

/**
 * Compares two lists of tests, to find the tests that were lost.
 *
 * If the list of renamed tests gives several new titles to one old title, that test was split. If
 * it gives one new title to several old titles, those tests were merged. A test is lost if it has
 * no pair and is not in the list of renamed tests. It is also lost if one of its new titles is
 * missing.
 */
export function compareTitles(
  before: readonly Title[],
  after: readonly Title[],
  renamings: readonly Renaming[] = [],
): Comparison {
  const counts = { same: 0, moved: 0, regrouped: 0, renamed: 0 };
  let rest = { gone: before, fresh: after };
  for (const [kind, keyOf] of PAIRINGS) {
    const next = withoutPairs(rest.gone, rest.fresh, keyOf);
    counts[kind] = rest.gone.length - next.gone.length;
    rest = next;
  }
  const known = new Set(after.flatMap(namesOf));
  const lost = rest.gone.filter((title) => {
    const targets = renamings.filter((one) => namesOf(title).includes(one.old));
    return targets.length === 0 || targets.some((one) => !known.has(one.new));
  });
  counts.renamed = rest.gone.length - lost.length;
  const targets = new Set(renamings.map((one) => one.new));
  const added = rest.fresh.filter((title) => !namesOf(title).some((name) => targets.has(name)));
  return { counts, lost, added };
}

/** Pairs the titles with equal keys, each at most once, and returns the titles without a pair. */
function withoutPairs(
  before: readonly Title[],
  after: readonly Title[],
  keyOf: (title: Title) => string,
): { gone: readonly Title[]; fresh: readonly Title[] } {
  const free = Map.groupBy(after, keyOf);
  const gone = before.filter((title) => free.get(keyOf(title))?.shift() === undefined);
  return { gone, fresh: [...free.values()].flat() };
}

/**
 * Returns a test's name with its suites and without them, because the list of renamed tests may
 * have either.
 */
function namesOf({ name }: Title): [string, string] {
  return [name, lastStep(name)];
}

function lastStep(name: string): string {
  return name.split(STEP).at(-1) ?? name;
}

/**
 * Parses lines `old title -> new title`. Empty lines, and lines that begin with `#`, are ignored.
 *
 * @throws Error for any other line
 */
export function readRenamings(text: string): Renaming[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => {
      const [old, renamed, ...more] = line.split(' -> ').map((part) => part.trim());
      if (old === undefined || renamed === undefined || more.length > 0)
        throw new Error(`This line is not "old title -> new title": ${line}`);
      return { old, new: renamed };
    });
}
