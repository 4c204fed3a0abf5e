/**
 * Keeps the results of the last test runs and benchmarks in `.cache/evidence`, which git ignores.
 * Each document names the commit, because a result says nothing about another one.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const FOLDER = '.cache/evidence';

/**
 * Reads which commit a checkout has.
 *
 * @param {string} root the folder of the checkout
 * @returns {{ commit: string | undefined, time: number, isClean: boolean }} the hash of the commit,
 *   which is undefined without git; its time in seconds; and false if a file differs from it
 */
export function readCheckout(root) {
  try {
    const [commit, time] = git(root, 'log', '-1', '--format=%H %ct').split(' ');
    // The setting status.showUntrackedFiles of the user could hide a new file.
    const changed = git(root, 'status', '--porcelain', '--untracked-files=normal');
    return { commit, time: Number(time), isClean: changed === '' };
  } catch {
    return { commit: undefined, time: 0, isClean: false };
  }
}

/**
 * Keeps a document under a name such as `tests/test`. It replaces an earlier document in one step,
 * so that a reader never sees half of a document.
 */
export function keepResult(root, name, document) {
  const file = pathOf(root, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, `${JSON.stringify(document)}\n`);
  renameSync(`${file}.new`, file);
}

/** Removes a document, because a newer run has begun. */
export function forgetResult(root, name) {
  rmSync(pathOf(root, name), { force: true });
}

/** Returns a kept document; undefined if there is none, or none that can be read. */
export function readResult(root, name) {
  try {
    return JSON.parse(readFileSync(pathOf(root, name), 'utf8'));
  } catch {
    return undefined;
  }
}

/** Returns the names of the documents below a name, sorted: `bench` has `bench/ssh` and others. */
export function keptNames(root, below) {
  try {
    const files = readdirSync(join(root, FOLDER, below)).filter((file) => file.endsWith('.json'));
    return files.map((file) => `${below}/${file.slice(0, -'.json'.length)}`).toSorted();
  } catch {
    return [];
  }
}

/**
 * Says why a kept result does not count for a checkout.
 *
 * @returns {string | undefined} undefined if it counts: it is of the same commit, and neither the
 *   run nor the checkout had changes that the commit does not have
 */
export function whyNotCounted(kept, checkout) {
  if (kept === undefined) return 'no run is on record';
  if (kept.commit === undefined || kept.commit !== checkout.commit)
    return `the last run was of commit ${kept.commit ?? 'unknown'}`;
  if (!kept.isClean) return 'the last run was of files that no commit has';
  if (!checkout.isClean) return 'this checkout has changes that its commit does not have';
  return undefined;
}

function pathOf(root, name) {
  return join(root, FOLDER, `${name}.json`);
}

function git(root, ...args) {
  const options = { encoding: 'utf8', maxBuffer: 2 ** 26, stdio: ['ignore', 'pipe', 'ignore'] };
  return execFileSync('git', ['-C', root, ...args], options).trim();
}
