import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { contextOf, copiesOf, installationOf, stagesOf } from './dockerfile.js';

/**
 * The files that the package has in addition to those of the image: its unit of systemd, and its
 * guide.
 */
const BESIDE_IMAGE = ['deploy/svc-server.service', 'docs/guides/one-vm.md'];

/** The files that npm and the compiler keep for themselves. The package does not need them. */
const MEMORIES = [/(?:^|\/)node_modules\/\.(?:bin|package-lock\.json)$/, /(?:^|\/)\.tsbuildinfo$/];

/**
 * Builds the service and the command, as the first stage of the Dockerfile does.
 *
 * @param {string} source the folder with the files of the commit
 * @param {string} work an empty folder
 * @param {(folder: string, args: string[]) => void} npm runs npm in a folder
 * @returns {string} the folder with the sources and what was built from them
 */
export function build(source, work, npm) {
  const [stage] = stagesOf(readFileSync(join(source, 'Dockerfile'), 'utf8'));
  const builder = join(work, 'build');
  for (const copied of copiesOf(stage)) copy(copied.source, builder, contextIn(source));
  npm(builder, ['ci', '--include=dev', '--include=optional']);
  npm(builder, ['run', 'build']);
  return builder;
}

/**
 * Installs the packages of production beside the built service, as the second stage of the
 * Dockerfile does. The image copies only the folder of that stage.
 *
 * @param {string} source the folder with the files of the commit
 * @param {string} builder the folder in which the service was built
 * @param {string} work the folder in which the result is made
 * @param {(folder: string, args: string[]) => void} npm runs npm in a folder
 * @returns {string} the folder with the files of the package
 */
export function makeProductionTree(source, builder, work, npm) {
  const [, app] = stagesOf(readFileSync(join(source, 'Dockerfile'), 'utf8'));
  const context = contextIn(source);
  const tree = join(work, 'tree');
  for (const copied of copiesOf(app)) {
    copy(copied.source, tree, copied.stage === 'build' ? { from: builder } : context);
  }
  const { omitted, deleted } = installationOf(app);
  npm(tree, ['ci', ...omitted]);
  removeFiles(join(tree, 'node_modules'), (path) => deleted.some((one) => path.endsWith(one)));
  for (const path of BESIDE_IMAGE) copy(path, tree, { from: source });
  remove(tree, (path) => MEMORIES.some((pattern) => pattern.test(path)));
  return tree;
}

/** Returns where the stages copy from, and which paths are in the context of the build. */
function contextIn(source) {
  const ignored = readFileSync(join(source, '.dockerignore'), 'utf8');
  return { from: source, admits: contextOf(ignored) };
}

/** Copies a file or a folder to the same place below another folder. */
function copy(path, to, { from, admits = () => true }) {
  if (!existsSync(join(from, path))) throw new Error(`${path} does not exist, and is to be copied`);
  mkdirSync(dirname(join(to, path)), { recursive: true });
  cpSync(join(from, path), join(to, path), {
    recursive: true,
    verbatimSymlinks: true,
    filter: (one) => admits(relative(from, one)),
  });
}

function removeFiles(folder, isOutdated) {
  remove(folder, (path, entry) => entry.isFile() && isOutdated(path));
}

/** Removes the entries of a folder, and of the folders below it, that fit. It follows no link. */
function remove(folder, fits, below = '') {
  for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
    const path = join(below, entry.name);
    if (fits(path, entry)) rmSync(join(folder, path), { recursive: true });
    else if (entry.isDirectory()) remove(folder, fits, path);
  }
}
