import { describe, expect, it } from 'vitest';
import {
  clausesAsDocComments,
  commentsOf,
  countWords,
  documentLines,
  filesLike,
  proseOf,
  titlesOf,
  withPronouns,
  type Prose,
} from './language.js';

/** The largest number of listed pronouns ({@link withPronouns}) per 1,000 words of each area. */
const MOST_PRONOUNS = { comments: 1, documents: 1, titles: 1 };

const where = ({ path, line, text }: Prose) => `${path}:${line}: ${text}`;

/**
 * Expects that prose has at most `ceiling` listed pronouns per 1,000 words. If it has more, the
 * failure lists the places.
 */
function expectPlainWords(prose: readonly Prose[], ceiling: number): void {
  const { words, perThousand } = countWords(prose);
  expect(words).toBeGreaterThan(5000);
  const offending = perThousand > ceiling ? withPronouns(prose).map(where) : [];
  expect(offending, `${perThousand.toFixed(2)} listed pronouns per 1,000 words`).toEqual([]);
}

describe('plain English', () => {
  it('comments of src name the subject instead of using an indefinite pronoun', () => {
    const files = filesLike('src/**/*.{ts,js,css,eta}', 'packages/*/src/**/*.{ts,js,css,eta}');
    expectPlainWords(
      files.flatMap((path) => proseOf(path, commentsOf)),
      MOST_PRONOUNS.comments,
    );
    const planted = `// Sent to whoever asked.\nconst text = 'for nobody'; /* and anew */`;
    const comments = commentsOf('planted.ts', planted);
    expect(comments.map(({ line }) => line)).toEqual([1, 2]);
    expect(countWords(comments)).toMatchObject({ words: 6, pronouns: 2 });
  });

  it('comments of tests and benchmarks do the same', () => {
    const files = filesLike(
      'test/**/*.{ts,js}',
      'packages/*/test/**/*.{ts,js}',
      'bench/**/*.{ts,js}',
      'scripts/*.js',
    );
    expectPlainWords(
      files.flatMap((path) => proseOf(path, commentsOf)),
      MOST_PRONOUNS.comments,
    );
  });

  it('comments of style sheets and views are read as well', () => {
    expect(commentsOf('planted.css', 'a {}\n/* Shown elsewhere. */')).toEqual([
      { path: 'planted.css', line: 2, text: '/* Shown elsewhere. */' },
    ]);
    expect(commentsOf('planted.eta', '<p>nobody</p><% /* For anybody. */ %>')).toHaveLength(1);
  });

  it('documents name the subject instead of using an indefinite pronoun', () => {
    const files = filesLike(
      '*.md',
      'docs/**/*.md',
      'src/**/*.md',
      'packages/*/*.md',
      'packages/*/src/**/*.md',
    );
    expectPlainWords(
      files.flatMap((path) => proseOf(path, documentLines)),
      MOST_PRONOUNS.documents,
    );
    const planted = documentLines('planted.md', 'For whom\n```sh\nelsewhere\n```\nand whatever');
    expect(withPronouns(planted).map(({ line }) => line)).toEqual([1, 5]);
  });

  it('titles of tests name the subject instead of using an indefinite pronoun', () => {
    const files = filesLike('test/**/*.test.ts', 'packages/*/test/**/*.test.ts');
    expectPlainWords(
      files.flatMap((path) => proseOf(path, titlesOf)),
      MOST_PRONOUNS.titles,
    );
    const planted = `describe('nobody', () => {
      it.each([['anew']])('takes %s elsewhere', () => call('whoever'));
      it.skipIf(true)(\`refuses \${name} for anybody\`, () => {});
    });`;
    const titles = titlesOf('planted.test.ts', planted);
    expect(withPronouns(titles).map(({ line }) => line)).toEqual([1, 2, 3]);
    expect(countWords(titles).pronouns).toBe(3);
  });

  it('doc comments are sentences, not clauses', () => {
    const clauses = filesLike('src/**/*.ts', 'packages/*/src/**/*.ts').flatMap((path) =>
      proseOf(path, clausesAsDocComments),
    );
    expect(clauses.map(where)).toEqual([]);
    const planted = `/** What ends with a user. */ export const a = 1;
      /** Whether a key is backed up. */ const hidden = 2;
      /** Revokes certificates. */ export class B {
        /** Who asks. */ user = 1;
        /** Whose key is lent. */ private key = 2;
        /** Whom the key belongs to. */ owner(): void {}
      }
      interface C {
        /** What a client asks. */ readonly request: string;
      }`;
    const lines = clausesAsDocComments('planted.ts', planted).map(({ line }) => line);
    expect(lines).toEqual([1, 2, 4, 5, 6, 9]);
  });
});
