import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join, matchesGlob, relative } from 'node:path';

/** Matches the endings of the files that the compiler makes from a source. */
const OUTPUT = /\.(?:js|d\.ts)(?:\.map)?$/;

/**
 * Compares the sources of a project with its build.
 *
 * @param {readonly string[]} sources the paths of all sources, relative to their folder
 * @param {readonly string[]} built the paths of all built files, relative to their folder
 * @returns {{ stale: string[], missing: string[], assets: string[] }} the built files without a
 *   source, the sources without a built file, and the files that are copied as they are
 */
export function compareOutputs(sources, built) {
  const compiled = sources.filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'));
  const assets = sources.filter(
    (path) => !path.endsWith('.ts') && !/(?:^|\/)README\.md$/.test(path),
  );
  const made = new Set(compiled.map((path) => path.slice(0, -'.ts'.length)));
  const copied = new Set(assets);
  const present = new Set(built);
  return {
    stale: built.filter((path) => !copied.has(path) && !made.has(path.replace(OUTPUT, ''))),
    missing: compiled.filter((path) => !present.has(path.replace(/\.ts$/, '.js'))),
    assets,
  };
}

/**
 * Prepares the folder of a build for an incremental compiler: it removes files without a source,
 * and copies changed assets. The compiler does not check if its outputs still exist. Its record of
 * the last build is `.tsbuildinfo`. If the output of a source in that record is missing, the record
 * is removed, so that the compiler makes all outputs.
 *
 * @param {{ sources: string, outputs: string, memory: string, kept: readonly string[] }} project
 *   the folder of the sources, the folder of the build, the path of `.tsbuildinfo`, and patterns of
 *   the files of the build that another program makes
 */
export function prepareOutputs({ sources, outputs, memory, kept }) {
  mkdirSync(outputs, { recursive: true });
  const spared = [relative(outputs, memory), ...kept];
  const built = filesIn(outputs).filter(
    (path) => !spared.some((pattern) => matchesGlob(path, pattern)),
  );
  const { stale, missing, assets } = compareOutputs(filesIn(sources), built);
  for (const path of stale) rmSync(join(outputs, path));
  for (const path of assets) copyIfChanged(join(sources, path), join(outputs, path));
  if (missing.length > 0 && remembers(memory, missing)) rmSync(memory);
}

/**
 * Returns true if `.tsbuildinfo`, a JSON document with the paths of all sources, names at least one
 * of the given sources.
 */
function remembers(memory, sources) {
  if (!existsSync(memory)) return false;
  const text = readFileSync(memory, 'utf8');
  return sources.some((path) => text.includes(`/${path}"`));
}

/** Copies a file unless its copy has the same size and is not older. */
function copyIfChanged(from, to) {
  const [source, copy] = [statSync(from), statSync(to, { throwIfNoEntry: false })];
  if (copy && copy.size === source.size && copy.mtimeMs >= source.mtimeMs) return;
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
}

function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}
