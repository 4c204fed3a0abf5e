import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The three lists of packages, with what each is for. */
export const GROUPS = {
  production: 'The service and its image install these.',
  optional: 'Only `npm ci` without `--omit=optional` installs these: other Nodes and PostgreSQL.',
  development: 'Only builds and tests use these.',
};

/**
 * Lists the packages of the lock file that come from a registry, with their licences. The licence
 * is read from the `package.json` of the installed package, because that is what was delivered. A
 * package for another platform is not installed, so its licence is read from the lock file.
 *
 * @param {string} root the folder with `node_modules`
 * @param {object} lock the content of `package-lock.json`
 * @returns {Record<keyof typeof GROUPS, { name: string, version: string, license: string,
 *   isInstalled: boolean, integrity: string | undefined }[]>}
 */
export function listPackages(root, lock) {
  const groups = Object.fromEntries(Object.keys(GROUPS).map((group) => [group, new Map()]));
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (!path.includes('node_modules/') || entry.link === true) continue;
    const one = describePackage(root, path, entry);
    groups[groupOf(entry)].set(`${one.name} ${one.version}`, one); // copies share a row
  }
  return Object.fromEntries(
    Object.entries(groups).map(([group, found]) => [group, [...found.values()].toSorted(byName)]),
  );
}

/**
 * Returns the content of package-lock.json without the packages that only development or an
 * optional install needs. Of the packages of this repository it keeps the links in node_modules on
 * which the service depends, and every entry of a folder in `packages`.
 */
export function productionLock(lock) {
  const own = ownPackages(lock);
  const isProduction = ([path, entry]) =>
    path.includes('node_modules/')
      ? entry.link === true
        ? own.has(path)
        : groupOf(entry) === 'production'
      : true;
  return {
    ...lock,
    packages: Object.fromEntries(Object.entries(lock.packages).filter(isProduction)),
  };
}

/** Counts the packages of each licence, the most frequent first. */
export function countLicenses(packages) {
  const counts = new Map();
  for (const { license } of packages) counts.set(license, (counts.get(license) ?? 0) + 1);
  return [...counts].toSorted(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
}

function groupOf({ dev, optional, devOptional }) {
  if (dev === true) return 'development';
  return optional === true || devOptional === true ? 'optional' : 'production';
}

/** Returns the paths of the packages of this repository that the service depends on. */
function ownPackages(lock) {
  const found = new Set();
  const add = ({ dependencies = {} }) => {
    for (const name of Object.keys(dependencies)) {
      const path = `node_modules/${name}`;
      const entry = lock.packages[path];
      if (entry?.link !== true || found.has(path)) continue;
      found.add(path);
      add(lock.packages[entry.resolved]);
    }
  };
  add(lock.packages['']);
  return found;
}

function describePackage(root, path, entry) {
  const installed = readManifest(join(root, path));
  return {
    name: entry.name ?? path.replace(/^.*node_modules\//, ''),
    version: entry.version,
    license: licenseOf(installed) ?? licenseOf(entry) ?? 'not stated',
    isInstalled: installed !== undefined,
    integrity: entry.integrity,
  };
}

function readManifest(folder) {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * Returns the licence that a manifest states, which is an object or a list in old manifests;
 * undefined if it states none.
 */
function licenseOf(manifest) {
  const stated = manifest?.license ?? manifest?.licenses;
  const names = [stated ?? []].flat().map((one) => (typeof one === 'string' ? one : one.type));
  return names.length === 0 ? undefined : names.join(' OR ');
}

/**
 * Compares by code units, because the alphabetical order of a language may differ between machines.
 */
function byName(one, other) {
  const [a, b] = [`${one.name} ${one.version}`, `${other.name} ${other.version}`];
  return a < b ? -1 : 1;
}
