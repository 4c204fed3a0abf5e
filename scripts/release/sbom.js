import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Describes the packages of the release as a CycloneDX document. It names every package that is
 * installed, and takes the hash of each from the lock file.
 *
 * @param {{ tree?: string, lock: object, nodes: { name: string, entry: object }[], runtimes: {
 *   name: string, entry: object }[], commit: string, time: number }} options the installed files of
 *   the service, if the release has it; the lock file; the packages with Node for the service, and
 *   those for the executables of the command; and the commit with its time in seconds
 * @returns {object} a document of CycloneDX 1.6 in JSON
 * @throws Error for a package that has no hash in the lock file
 */
export function sbomOf({ tree, lock, nodes, runtimes, commit, time }) {
  const installed = new Set(
    Object.keys(lock.packages).filter(
      (path) =>
        path.includes('node_modules/') && tree !== undefined && existsSync(join(tree, path)),
    ),
  );
  const components = new Map();
  for (const path of installed) {
    const component = componentOf(path, lock);
    components.set(component['bom-ref'], component);
  }
  const programs = nodes.map(nodeComponent);
  const command = commandOf(runtimes, lock);
  const root = {
    type: 'application',
    'bom-ref': `pkg:generic/svc-server@${lock.version}`,
    name: 'svc-server',
    version: lock.version,
    licenses: [{ expression: lock.packages[''].license }],
    purl: `pkg:generic/svc-server@${lock.version}`,
  };
  const ofRoot = dependenciesOf('', installed, lock, root['bom-ref']);
  const added = [...programs, ...command.components];
  ofRoot.dependsOn = [
    ...ofRoot.dependsOn,
    ...[...programs, ...command.components.slice(0, 1)].map((one) => one['bom-ref']),
  ].toSorted(byText);
  const names = [...nodes, ...runtimes].map(({ name, entry }) => `${name}@${entry.version}`);
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(`${commit} ${names.join()}`)}`,
    version: 1,
    metadata: {
      timestamp: new Date(time * 1000).toISOString(),
      component: root,
    },
    components: [...components.values(), ...added].toSorted((one, other) =>
      byText(one['bom-ref'], other['bom-ref']),
    ),
    dependencies: [
      ofRoot,
      ...graphOf(installed, lock),
      ...programs.map((one) => ({ ref: one['bom-ref'], dependsOn: [] })),
      ...command.dependencies,
    ].toSorted((one, other) => byText(one.ref, other.ref)),
  };
}

function nodeComponent({ name, entry }) {
  return componentOf(`node_modules/${name}`, { packages: { [`node_modules/${name}`]: entry } });
}

/**
 * Returns the components of the command, with the command itself first, and their dependencies. The
 * script of the command contains only packages of this repository. Without runtimes, the release
 * has no command.
 */
function commandOf(runtimes, lock) {
  if (runtimes.length === 0) return { components: [], dependencies: [] };
  const purl = `pkg:generic/svc-server/cli@${lock.version}`;
  const own = {
    type: 'application',
    'bom-ref': purl,
    name: 'svc',
    version: lock.version,
    licenses: [{ expression: lock.packages[''].license }],
    purl,
  };
  const nodes = runtimes.map(nodeComponent);
  const references = nodes.map((one) => one['bom-ref']).toSorted(byText);
  return {
    components: [own, ...nodes],
    dependencies: [
      { ref: purl, dependsOn: references },
      ...references.map((ref) => ({ ref, dependsOn: [] })),
    ],
  };
}

/**
 * Compares texts by code units, because the alphabetical order of a language may differ between
 * machines.
 */
const byText = (one, other) => (one < other ? -1 : 1);

/** Returns the package of this repository that a path of the lock file links to, or the path. */
function resolvedPath(path, { packages }) {
  return packages[path].link === true ? packages[path].resolved : path;
}

function componentOf(path, lock) {
  const isOwn = lock.packages[path].link === true;
  const {
    name = path.replace(/^.*node_modules\//, ''),
    version,
    integrity,
    license,
  } = lock.packages[resolvedPath(path, lock)];
  const [, own = ''] = /^@svc\/(.*)$/.exec(name) ?? [];
  // A package of this repository is in no registry. Its package URL has the type `generic`, so that
  // no package of npm with the same name is taken for it.
  const purl = isOwn
    ? `pkg:generic/svc-server/${own}@${version}`
    : `pkg:npm/${name.replace('@', '%40')}@${encodeURIComponent(version)}`;
  const component = { type: 'library', 'bom-ref': purl, name, version, purl };
  if (license !== undefined) component.licenses = [licenseOf(license)];
  if (!isOwn) component.hashes = [hashOf(name, integrity)];
  return component;
}

function licenseOf(license) {
  const isExpression = /^\(*[A-Za-z0-9.+-]+\)*(?: (?:AND|OR|WITH) \(*[A-Za-z0-9.+-]+\)*)*$/;
  return isExpression.test(license) ? { expression: license } : { license: { name: license } };
}

function hashOf(name, integrity) {
  const [, base64] = /^sha512-(\S+)$/.exec(integrity ?? '') ?? [];
  if (base64 === undefined) throw new Error(`package-lock.json has no SHA-512 of ${name}`);
  return { alg: 'SHA-512', content: Buffer.from(base64, 'base64').toString('hex') };
}

/** Returns one row for each package: copies of a package at several places share a row. */
function graphOf(installed, lock) {
  const rows = new Map();
  for (const path of installed) {
    const { ref, dependsOn } = dependenciesOf(
      resolvedPath(path, lock),
      installed,
      lock,
      componentOf(path, lock)['bom-ref'],
    );
    rows.set(ref, [...new Set([...(rows.get(ref) ?? []), ...dependsOn])].toSorted(byText));
  }
  return [...rows].map(([ref, dependsOn]) => ({ ref, dependsOn }));
}

/** Returns the packages that Node would load for the names that a package depends on. */
function dependenciesOf(path, installed, lock, ref) {
  const { dependencies, optionalDependencies, peerDependencies } = lock.packages[path];
  const names = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
  const found = names.flatMap((name) => {
    const place = foldersAbove(path).find((folder) =>
      installed.has(`${folder}node_modules/${name}`),
    );
    return place === undefined ? [] : [`${place}node_modules/${name}`];
  });
  const references = found.map((one) => componentOf(one, lock)['bom-ref']);
  return { ref, dependsOn: [...new Set(references)].toSorted(byText) };
}

/** Returns the folders in which Node looks for `node_modules`, from a package up to the root. */
function foldersAbove(path) {
  const folders = [''];
  let below = '';
  for (const name of path.split('/').filter(Boolean)) {
    below += `${name}/`;
    if (name !== 'node_modules') folders.unshift(below);
  }
  return folders;
}

/** Computes a UUID (of version 8, RFC 9562) from a text. The same text always has the same UUID. */
function uuidOf(text) {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16);
  bytes[6] = (bytes[6] & 0x0f) | 0x80;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
