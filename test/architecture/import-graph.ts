import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');

/** The source files of the bundled entry points, by the names of `imports` in package.json. */
const { imports: ENTRIES }: { imports: Readonly<Record<string, { source: string }>> } = JSON.parse(
  readFileSync(join(ROOT, 'package.json'), 'utf8'),
);

/**
 * A source file and the targets of its imports: a path from the project's root, or the name of a
 * package.
 */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly imports: readonly string[];
}

/** Returns every TypeScript file below a folder of the project. */
export function sourceFiles(folder: string): SourceFile[] {
  return filesBelow(folder, /(?<!\.d)\.ts$/);
}

/** Returns every file below a folder of the project whose name matches. */
export function filesBelow(folder: string, names: RegExp): SourceFile[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && names.test(entry.name))
    .map((entry) => readSource(relative(ROOT, join(entry.parentPath, entry.name))));
}

/** Returns the names of the folders of `packages`. */
export function packageFolders(): string[] {
  return readdirSync(join(ROOT, 'packages'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

/** Returns every TypeScript file of the server and of the packages, without tests. */
export function productFiles(): SourceFile[] {
  const folders = packageFolders().map((name) => `packages/${name}/src`);
  return ['src', ...folders].flatMap(sourceFiles);
}

/** Reads one file of the project, and resolves its imports. */
export function readSource(path: string): SourceFile {
  const text = readFileSync(join(ROOT, path), 'utf8');
  return { path, text, imports: importsOf(text).map((target) => resolveImport(path, target)) };
}

/**
 * Finds the targets of all imports and re-exports: static, type-only and dynamic ones, as written.
 */
export function importsOf(text: string): string[] {
  const pattern = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*)(['"`])([^'"`\n]+)\1/g;
  return [...text.matchAll(pattern)].map((match) => match[2] ?? '');
}

function resolveImport(from: string, target: string): string {
  const source = target.replace(/\.js$/, '.ts');
  const alias = /^#(domain|platform)\/(.*)$/.exec(source);
  if (alias) return `src/${alias[1]}/${alias[2]}`;
  if (target.startsWith('#')) return ENTRIES[target]?.source.slice('./'.length) ?? target;
  return target.startsWith('.') ? join(dirname(from), source) : (exportedSource(target) ?? target);
}

/** Returns the source file behind an import of one of our packages, such as `@svc/NAME/SUBPATH`. */
function exportedSource(target: string): string | undefined {
  for (const folder of packageFolders()) {
    const text = readFileSync(join(ROOT, 'packages', folder, 'package.json'), 'utf8');
    const { name, exports }: { name: string; exports: Record<string, { source?: string }> } =
      JSON.parse(text);
    const source = target.startsWith(name) && exports[`.${target.slice(name.length)}`]?.source;
    if (source) return join('packages', folder, source);
  }
  return undefined;
}

/**
 * Returns true if the target of an import is a file of the product, and false for a package of npm.
 */
export function isOwn(target: string): boolean {
  return target.startsWith('src/') || target.startsWith('packages/');
}

/**
 * Returns every source file that an entry point imports, directly or through other files, and
 * itself.
 */
export function reachableFrom(entry: string): Set<string> {
  const seen = new Set<string>();
  const visit = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    readSource(path).imports.filter(isOwn).forEach(visit);
  };
  visit(entry);
  return seen;
}
