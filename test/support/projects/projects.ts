import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The projects of the tests: what needs neither a server nor a program, what needs PostgreSQL
 * alone, and the rest.
 */
export type ProjectName = (typeof PROJECTS)[number];

/**
 * The projects of `npm test`. Long files come first, so that no worker is left with one at the end.
 */
export const PROJECTS = ['systems', 'api', 'unit'] as const;

/** A module that starts other programs: a test file that reaches one belongs to `systems`. */
const PROGRAMS = ['node:child_process', 'playwright-core'];

/** The modules that use the PostgreSQL of the run. */
const DATABASE = ['test/support/database.ts'];

/** The module by which a test reads how large it is. */
const SCALE = 'test/support/scale.ts';

/** These folders hold functions and documents alone. */
const UNIT = /^(?:test\/(?:unit|architecture)|packages\/[^/]+\/test)\//;

/** An import that stays at run time. */
const IMPORT =
  /(?:^|\n)(?:import|export)(?! type\b)(?:[^;'"]*\bfrom)?\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g;

/** Sorts all test files under a folder into projects, by what they import. */
export class TestFiles {
  readonly #imports = new Map<string, readonly string[]>();

  constructor(private readonly root: string) {}

  /** Returns the files of a project. */
  of(project: ProjectName): string[] {
    return this.#all().filter((file) => this.projectOf(file) === project);
  }

  /** Returns the files with tests that `npm run test:scale` runs at full size. */
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

  /** Checks whether a file imports one of these modules, itself or by other files of the tests. */
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
    // A test of imports has some in its texts, of files that do not exist.
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    const found = [...text.matchAll(IMPORT)].map(([, from, dynamic]) => from ?? dynamic ?? '');
    const imports = found.map((one) =>
      one.startsWith('.') ? join(file, '..', one).replace(/\.js$/, '.ts') : one,
    );
    this.#imports.set(file, imports);
    return imports;
  }
}
