import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The architectures of the release, with their names at Debian. */
export const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' };

/**
 * Returns the package with the program of Node for an architecture, as the lock file has it.
 *
 * @throws Error for a lock file without the hash of the package
 */
export function nodePackage(lock, architecture) {
  const name = `node-linux-${architecture}`;
  const entry = lock.packages[`node_modules/${name}`];
  if (!entry?.integrity?.startsWith('sha512-'))
    throw new Error(`package-lock.json has no SHA-512 of ${name}`);
  return { name, entry };
}

/**
 * Installs the program of Node for an architecture, which may be another than that of this machine.
 *
 * @param {(folder: string, args: string[]) => void} npm runs npm in a folder
 * @param {string} folder the new folder for the package
 * @returns {{ program: string, license: string }} the paths of two files
 */
export function installNode(lock, architecture, npm, folder) {
  const one = nodePackage(lock, architecture);
  const installed = installPackage(one, npm, folder);
  const [program, license] = ['bin/node', 'LICENSE'].map((file) => join(installed, file));
  if (!existsSync(program)) throw new Error(`${one.name} has no program`);
  return { program, license };
}

/**
 * Installs one package, which may be for another platform than this one. npm compares the package
 * with the hash.
 *
 * @param {{ name: string, entry: { version: string, integrity: string } }} one
 * @param {(folder: string, args: string[]) => void} npm runs npm in a folder
 * @param {string} folder the new folder for the package
 * @returns {string} the folder with the files of the package
 */
export function installPackage({ name, entry: { version, integrity } }, npm, folder) {
  mkdirSync(folder, { recursive: true });
  const manifest = { name: 'node', version: '0.0.0', dependencies: { [name]: version } };
  // The entry does not name its platform, because npm refuses a package for another platform.
  const packages = { '': manifest, [`node_modules/${name}`]: { version, integrity } };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(
    join(folder, 'package-lock.json'),
    JSON.stringify({ name: 'node', version: '0.0.0', lockfileVersion: 3, packages }),
  );
  npm(folder, ['ci']);
  return join(folder, 'node_modules', name);
}

/** Copies the program and its license to a tree of files. */
export function placeNode({ program, license }, tree) {
  mkdirSync(join(tree, 'bin'), { recursive: true });
  copyFileSync(program, join(tree, 'bin/node'));
  copyFileSync(license, join(tree, 'LICENSE.node'));
}
