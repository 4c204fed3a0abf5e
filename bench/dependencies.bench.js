import { execFileSync } from 'node:child_process';
import { cpSync, lstatSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { table } from './measure.js';

const TREE = dirname(import.meta.dirname);
/** The files that `npm ci` of production needs. */
const NEEDED = ['package.json', 'package-lock.json', '.npmrc'];

/**
 * Installs the dependencies of production as the image does. For each direct dependency it prints
 * the packages and the MiB on disk that would be gone without it.
 *
 * @param folder a folder with such an installation; by default one is made and removed
 */
export function run(folder) {
  const made = folder ?? mkdtempSync(join(tmpdir(), 'svc-dependencies-'));
  try {
    if (folder === undefined) install(made);
    report(made);
  } finally {
    if (folder === undefined) rmSync(made, { recursive: true, force: true });
  }
}

function install(folder) {
  for (const file of NEEDED) cpSync(join(TREE, file), join(folder, file));
  execFileSync('npm', ['ci', '--omit=dev', '--omit=optional'], { cwd: folder, stdio: 'inherit' });
}

function report(folder) {
  const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  const direct = Object.keys(packages[''].dependencies).map((name) => `node_modules/${name}`);
  const all = reachable(packages, direct);
  const sizes = new Map([...all].map((path) => [path, bytesOf(join(folder, path))]));
  const sum = (paths) => [...paths].reduce((bytes, path) => bytes + sizes.get(path), 0);
  const rows = direct
    .map((path) => {
      const others = reachable(
        packages,
        direct.filter((other) => other !== path),
      );
      const only = [...all].filter((one) => !others.has(one));
      return { path, packages: only.length, bytes: sum(only) };
    })
    .filter(({ packages: brought }) => brought > 0)
    .toSorted((one, other) => other.bytes - one.bytes);
  process.stdout.write(
    `${table(rows.map(({ path, packages: brought, bytes }) => ({ dependency: nameOf(path), 'packages it alone brings': brought, MiB: mebibytes(bytes) })))}\n\n` +
      `${all.size} packages, ${mebibytes(sum(all))} MiB on disk\n`,
  );
}

/**
 * Returns the packages in `from`, and all packages that they need, directly or through others. A
 * peer dependency counts unless it is optional.
 */
function reachable(packages, from) {
  const found = new Set();
  const waiting = [...from];
  while (waiting.length > 0) {
    const path = waiting.pop();
    if (path === undefined || found.has(path)) continue;
    found.add(path);
    const { dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = packages[path];
    const peers = Object.keys(peerDependencies).filter(
      (name) => !peerDependenciesMeta[name]?.optional,
    );
    for (const name of [...Object.keys(dependencies), ...peers]) {
      waiting.push(resolve(packages, path, name));
    }
  }
  return found;
}

/**
 * Finds the path of the package that an import inside another package gets, by the rules of
 * Node.js. Returns undefined if no such package is installed.
 */
function resolve(packages, inside, name) {
  for (let parent = inside; ; parent = parent.slice(0, parent.lastIndexOf('/node_modules/'))) {
    const path = `${parent}/node_modules/${name}`;
    if (packages[path] !== undefined) return path;
    if (!parent.includes('/node_modules/')) {
      return packages[`node_modules/${name}`] === undefined ? undefined : `node_modules/${name}`;
    }
  }
}

/**
 * Returns the bytes that a folder occupies on the disk, as `du` does. Packages in a `node_modules`
 * inside the folder do not count.
 */
function bytesOf(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.name !== 'node_modules')
    .reduce(
      (bytes, entry) => {
        const path = join(folder, entry.name);
        return bytes + (entry.isDirectory() ? bytesOf(path) : lstatSync(path).blocks * 512);
      },
      lstatSync(folder).blocks * 512,
    );
}

const nameOf = (path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
const mebibytes = (bytes) => (bytes / 2 ** 20).toFixed(1);
