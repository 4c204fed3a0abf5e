import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { entriesOf, writeTarGz } from './tar.js';

/** The folder of the service on a Debian machine. */
const HOME = 'usr/lib/svc-server';
/**
 * The paths in the unit of systemd, which fit a tarball in /opt, and the paths that replace them in
 * the package.
 */
const PATHS = [
  ['/usr/local/bin/node', `/${HOME}/bin/node`],
  ['/opt/svc-server/docs/guides/one-vm.md', '/usr/share/doc/svc-server/one-vm.md'],
  ['/opt/svc-server', `/${HOME}`],
];
const SCRIPTS = ['postinst', 'postrm', 'prerm'];
const COMMANDS = ['svc-server-admin', 'svc-server-migrate'];

/**
 * Writes the package of the service.
 *
 * @param {{ file: string, tree: string, scripts: string, version: string, architecture: string,
 *   time: number }} options the path of the package, the folders of the service and of the
 *   package's scripts, the name of the architecture at Debian, and the seconds since 1970 for all
 *   files
 */
export async function writeDeb({ tree, scripts, ...options }) {
  await writePackage({
    ...options,
    entries: debEntries(tree, scripts),
    control: readFileSync(join(scripts, 'control'), 'utf8'),
    programs: SCRIPTS.map((name) =>
      textFile(name, readFileSync(join(scripts, name), 'utf8'), 0o755),
    ),
  });
}

/**
 * Writes a package of Debian. The format, an `ar` archive of three members, is so small that it is
 * written here. A machine may have no `dpkg-deb`, and each version of `dpkg-deb` compresses in its
 * own way.
 *
 * @param {{ file: string, entries: import('./tar.js').Entry[], control: string, programs?:
 *   import('./tar.js').Entry[], version: string, architecture: string, time: number }} options the
 *   path of the package, its files, its description with `@VERSION@`, `@ARCHITECTURE@` and
 *   `@SIZE@`, the scripts that dpkg runs, and the seconds since 1970 for all files
 */
export async function writePackage({ file, entries, time, ...described }) {
  const parts = ['control', 'data'].map((name) => `${file}.${name}`);
  const control = await controlEntries(entries, described);
  await writeTarGz(parts[0], control, time);
  await writeTarGz(parts[1], entries, time);
  const members = [
    { name: 'debian-binary', text: '2.0\n' },
    { name: 'control.tar.gz', from: parts[0] },
    { name: 'data.tar.gz', from: parts[1] },
  ];
  await pipeline(
    Readable.from(arOf(members, time), { objectMode: false }),
    createWriteStream(file),
  );
  for (const part of parts) rmSync(part);
}

/**
 * Converts a version to the notation of Debian, such as `0.14.0~rc.1`. The tilde makes it older
 * than `0.14.0`.
 */
export function debianVersion(version) {
  return version.replace('-', '~');
}

/**
 * Returns the unit of systemd for the service, with the paths of the package.
 *
 * @throws Error for a unit without one of the paths
 */
export function debianUnit(unit) {
  return PATHS.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`the unit does not have ${from}`);
    return text.replaceAll(from, to);
  }, unit);
}

/** Returns the entry of a file whose path has no slash at its beginning. */
export function textFile(path, content, mode = 0o644) {
  return { path: `./${path}`, type: 'file', mode, text: content };
}

function folderEntry(path) {
  return { path: `./${path}`, type: 'folder' };
}

/** Returns the files that the package installs. */
function debEntries(tree, scripts) {
  const read = (path) => readFileSync(join(tree, path), 'utf8');
  const program = (name) => {
    const script = readFileSync(join(scripts, name), 'utf8');
    return textFile(`usr/bin/${name}`, script, 0o755);
  };
  const copyright = `${read('LICENSE')}\n\nNode.js, in /${HOME}/bin/node:\n\n${read('LICENSE.node')}`;
  return [
    { path: '.', type: 'folder' },
    ...['usr', 'usr/bin'].map(folderEntry),
    ...COMMANDS.map(program),
    ...['usr/lib', HOME].map(folderEntry),
    ...entriesOf(tree, `./${HOME}`, new Set(['bin/node'])).filter(
      ({ path }) => !/^\.\/usr\/lib\/svc-server\/(?:deploy|docs)(?:\/|$)/.test(path),
    ),
    ...['usr/lib/systemd', 'usr/lib/systemd/system'].map(folderEntry),
    textFile(
      'usr/lib/systemd/system/svc-server.service',
      debianUnit(read('deploy/svc-server.service')),
    ),
    ...['usr/share', 'usr/share/doc', 'usr/share/doc/svc-server'].map(folderEntry),
    textFile('usr/share/doc/svc-server/copyright', copyright),
    textFile('usr/share/doc/svc-server/one-vm.md', read('docs/guides/one-vm.md')),
  ];
}

/** Returns the files that dpkg reads: the description, the hashes for `dpkg --verify`, scripts. */
async function controlEntries(entries, { control, programs = [], version, architecture }) {
  const sums = [];
  let bytes = 0;
  for (const { path, type, from, text } of entries) {
    if (type !== 'file') continue;
    const hash = createHash('md5');
    if (from === undefined) hash.update(text);
    else await pipeline(createReadStream(from), hash);
    sums.push(`${hash.digest('hex')}  ${path.slice(2)}\n`);
    bytes += from === undefined ? Buffer.byteLength(text) : statSync(from).size;
  }
  const description = control
    .replace('@VERSION@', debianVersion(version))
    .replace('@ARCHITECTURE@', architecture)
    .replace('@SIZE@', String(Math.ceil(bytes / 1024)));
  return [
    { path: '.', type: 'folder' },
    textFile('control', description),
    textFile('md5sums', sums.join('')),
    ...programs,
  ];
}

async function* arOf(members, time) {
  yield '!<arch>\n';
  for (const { name, text, from } of members) {
    const size = text?.length ?? statSync(from).size;
    const fields = [
      name.padEnd(16),
      String(time).padEnd(12),
      '0'.padEnd(6),
      '0'.padEnd(6),
      '100644'.padEnd(8),
      String(size).padEnd(10),
    ];
    yield `${fields.join('')}\`\n`;
    if (from === undefined) yield text;
    else yield* createReadStream(from);
    if (size % 2 === 1) yield '\n';
  }
}
