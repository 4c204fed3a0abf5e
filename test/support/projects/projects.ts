import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A group of test files, which vitest calls a project. `unit` tests need neither a server nor
 * another program. `api` tests need only PostgreSQL. `systems` has all other tests.
 */
export type ProjectName = (typeof PROJECTS)[number];

/**
 * The projects of `npm test`, in the order in which they run. Projects with long files come first,
 * because a long file at the end would keep one worker busy alone.
 */
export const PROJECTS = ['systems', 'api', 'unit'] as const;

/**
 * The modules that start other programs. A test file that imports one, directly or through other
 * files, belongs to the project `systems`.
 */
const PROGRAMS = ['node:child_process', 'playwright-core'];

/**
 * The modules that use PostgreSQL. A test file that imports one belongs to the project `api`,
 * unless it belongs to `systems`.
 */
const DATABASE = ['test/support/database.ts'];

/** The module by which a test finds out if it must run at full scale. */
const SCALE = 'test/support/scale.ts';

/** The module that a test file imports if it runs in `npm run test:scale` alone. */
const FULL_SCALE_ONLY = 'test/support/full-scale-only.ts';

/** Matches the folders in which all tests belong to `unit`. */
const UNIT = /^(?:test\/(?:unit|architecture)|packages\/[^/]+\/test)\//;

/** Matches an import that is left at run time. An import of types is not. */
const IMPORT =
  /(?:^|\n)(?:import|export)(?! type\b)(?:[^;'"]*\bfrom)?\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g;

/** Sorts all test files below a folder into projects, by the modules that they import. */
export class TestFiles {
  readonly #imports = new Map<string, readonly string[]>();

  constructor(private readonly root: string) {}

  /** Returns the files of a project in `npm test`. */
  of(project: ProjectName): string[] {
    return this.#all().filter(
      (file) => this.projectOf(file) === project && !this.isFullScaleOnly(file),
    );
  }

  /** Returns the files that only `npm run test:scale` runs. */
  fullScaleOnly(): string[] {
    return this.#all().filter((file) => this.isFullScaleOnly(file));
  }

  /** Returns true if a file itself imports the module {@link FULL_SCALE_ONLY}. */
  isFullScaleOnly(file: string): boolean {
    return this.#importsOf(file).includes(FULL_SCALE_ONLY);
  }

  /**
   * Returns the files with tests that depend on the scale, so that `npm run test:scale` runs them
   * too.
   */
  withScale(): string[] {
    return this.#all().filter((file) => this.#reaches(file, [SCALE]));
  }

  projectOf(file: string): ProjectName {
    if (UNIT.test(file)) return 'unit';
    if (this.#reaches(file, PROGRAMS)) return 'systems';
    return this.#reaches(file, DATABASE) ? 'api' : 'unit';
  }

  #all(): string[] {
    const patterns = ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'];
    return globSync(patterns, { cwd: this.root }).toSorted();
  }

  /**
   * Returns true if a file imports one of these modules, directly or through other files of the
   * tests.
   */
  #reaches(file: string, modules: readonly string[], seen = new Set<string>()): boolean {
    if (seen.has(file)) return false;
    seen.add(file);
    return this.#importsOf(file).some(
      (one) =>
        modules.includes(one) || (one.startsWith('test/') && this.#reaches(one, modules, seen)),
    );
  }

  #importsOf(file: string): readonly string[] {
    const known = this.#imports.get(file);
    if (known) return known;
    const path = join(this.root, file);
    // A missing file counts as empty: the tests of this class have texts with imports of files that
    // do not exist.
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    const found = [...text.matchAll(IMPORT)].map(([, from, dynamic]) => from ?? dynamic ?? '');
    const imports = found.map((one) =>
      one.startsWith('.') ? join(file, '..', one).replace(/\.js$/, '.ts') : one,
    );
    this.#imports.set(file, imports);
    return imports;
  }
}
