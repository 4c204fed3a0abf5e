import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, readFileSync, rmSync, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { HeaderIndex, INT16, INT32, LOCALIZED, TEXT, TEXTS } from './rpm-header.js';

/* Tags of the main header, of rpm's <rpm/rpmtag.h>. */
const TAG = {
  name: 1000,
  version: 1001,
  release: 1002,
  summary: 1004,
  description: 1005,
  buildTime: 1006,
  buildHost: 1007,
  size: 1009,
  license: 1014,
  group: 1016,
  os: 1021,
  arch: 1022,
  fileSizes: 1028,
  fileModes: 1030,
  fileDevices: 1033,
  fileTimes: 1034,
  fileDigests: 1035,
  fileLinks: 1036,
  fileFlags: 1037,
  fileUsers: 1039,
  fileGroups: 1040,
  sourcePackage: 1044,
  fileVerify: 1045,
  provideName: 1047,
  requireFlags: 1048,
  requireName: 1049,
  requireVersion: 1050,
  fileDevice: 1095,
  fileInodes: 1096,
  fileLanguages: 1097,
  provideFlags: 1112,
  provideVersion: 1113,
  folderIndexes: 1116,
  baseNames: 1117,
  folderNames: 1118,
  payloadFormat: 1124,
  payloadCompressor: 1125,
  payloadFlags: 1126,
  fileDigestKind: 5011,
  encoding: 5062,
  payloadDigest: 5092,
  payloadDigestKind: 5093,
};
/* Tags of the header of signatures. A package of this project has only hashes in it. */
const SIGNATURE_TAG = { size: 1000, sha1: 269, sha256: 273, payloadSize: 1007 };
const IMMUTABLE_REGION = 63;
const SIGNATURE_REGION = 62;

const SHA256 = 8;
const EQUAL = 8;
const DOCUMENTATION = 2;
/**
 * The kind and the version of conditions that rpm itself must fulfil, so that an rpm that is too
 * old does not install the package.
 */
const OF_RPM = { flags: 0x1000000 | 8 | 2, version: '4.0-1' };
const RPM_FEATURES = [
  ['rpmlib(CompressedFileNames)', '3.0.4-1'],
  ['rpmlib(FileDigests)', '4.6.0-1'],
  ['rpmlib(PayloadFilesHavePrefix)', OF_RPM.version],
];

/**
 * Writes a package of RPM 4. Equal content makes an equal package, which no version of `rpmbuild`
 * promises. The package has no scripts.
 *
 * @param {{ file: string, entries: import('../tar.js').Entry[], about: { name: string, version:
 *   string, architecture: string, summary: string, description: string, license: string, requires:
 *   string[] }, time: number }} options the path of the package, its files without folders that
 *   other packages own, what it says about itself, and the seconds since 1970
 */
export async function writeRpm({ file, entries, about, time }) {
  const files = entries.filter(({ type }) => type === 'file').toSorted(byPath);
  const sizes = files.map(({ from, text }) =>
    from === undefined ? Buffer.byteLength(text) : statSync(from).size,
  );
  const payload = `${file}.payload`;
  await pipeline(
    Readable.from(cpioOf(files, sizes, time), { objectMode: false }),
    createGzip({ level: 9 }),
    createWriteStream(payload),
  );
  const digests = [];
  for (const one of files) digests.push(await digestOf(one));
  const header = headerOf({ files, sizes, digests, about, time, payload });
  const signatures = signaturesOf(header, { payload, size: cpioSize(files, sizes) });
  const parts = [lead(about), signatures, padding(signatures.length, 8), header];
  await pipeline(
    Readable.from(bytesOf(parts, payload), { objectMode: false }),
    createWriteStream(file),
  );
  rmSync(payload);
}

/**
 * Converts a version to the notation of RPM, such as `0.14.0~rc.1`. The tilde makes it older than
 * `0.14.0`.
 */
export function rpmVersion(version) {
  return version.replaceAll('-', '~');
}

const byPath = (one, other) => (one.path < other.path ? -1 : 1);

async function* bytesOf(parts, payload) {
  yield* parts;
  yield* createReadStream(payload);
}

function headerOf({ files, sizes, digests, about, time, payload }) {
  const index = new HeaderIndex(IMMUTABLE_REGION);
  const requires = [
    ...about.requires.map((name) => ({ name, flags: 0, version: '' })),
    ...RPM_FEATURES.map(([name, version]) => ({ name, flags: OF_RPM.flags, version })),
  ].toSorted((one, other) => (one.name < other.name ? -1 : 1));
  index.add(100, TEXTS, ['C']);
  index.add(TAG.name, TEXT, about.name);
  index.add(TAG.version, TEXT, about.version);
  index.add(TAG.release, TEXT, '1');
  index.add(TAG.summary, LOCALIZED, [about.summary]);
  index.add(TAG.description, LOCALIZED, [about.description]);
  index.add(TAG.buildTime, INT32, [time]);
  index.add(TAG.buildHost, TEXT, 'localhost');
  index.add(TAG.size, INT32, [sizes.reduce((total, size) => total + size, 0)]);
  index.add(TAG.license, TEXT, about.license);
  index.add(TAG.group, LOCALIZED, ['Unspecified']);
  index.add(TAG.os, TEXT, 'linux');
  index.add(TAG.arch, TEXT, about.architecture);
  addFiles(index, { files, sizes, digests, time });
  index.add(TAG.sourcePackage, TEXT, `${about.name}-${about.version}-1.src.rpm`);
  index.add(TAG.provideName, TEXTS, [about.name]);
  index.add(
    TAG.requireFlags,
    INT32,
    requires.map(({ flags }) => flags),
  );
  index.add(
    TAG.requireName,
    TEXTS,
    requires.map(({ name }) => name),
  );
  index.add(
    TAG.requireVersion,
    TEXTS,
    requires.map(({ version }) => version),
  );
  index.add(TAG.provideFlags, INT32, [EQUAL]);
  index.add(TAG.provideVersion, TEXTS, [`${about.version}-1`]);
  index.add(TAG.payloadFormat, TEXT, 'cpio');
  index.add(TAG.payloadCompressor, TEXT, 'gzip');
  index.add(TAG.payloadFlags, TEXT, '9');
  index.add(TAG.encoding, TEXT, 'utf-8');
  index.add(TAG.payloadDigest, TEXTS, [hashOf('sha256', readFileSync(payload))]);
  index.add(TAG.payloadDigestKind, INT32, [SHA256]);
  return index.bytes();
}

/** Adds the tags about the files. Each tag has a list with one value for each file. */
function addFiles(index, { files, sizes, digests, time }) {
  const places = files.map(({ path }) => path.slice(1)); // without the dot: "./usr" is "/usr"
  const folders = [...new Set(places.map((path) => path.slice(0, path.lastIndexOf('/') + 1)))];
  const folderOf = (path) => folders.indexOf(path.slice(0, path.lastIndexOf('/') + 1));
  const each = (value) => files.map(() => value);
  index.add(TAG.fileSizes, INT32, sizes);
  index.add(
    TAG.fileModes,
    INT16,
    files.map(({ mode }) => 0o100000 | mode),
  );
  index.add(TAG.fileDevices, INT16, each(0));
  index.add(TAG.fileTimes, INT32, each(time));
  index.add(TAG.fileDigests, TEXTS, digests);
  index.add(TAG.fileLinks, TEXTS, each(''));
  index.add(
    TAG.fileFlags,
    INT32,
    places.map((path) => (path.startsWith('/usr/share/doc/') ? DOCUMENTATION : 0)),
  );
  index.add(TAG.fileUsers, TEXTS, each('root'));
  index.add(TAG.fileGroups, TEXTS, each('root'));
  index.add(TAG.fileVerify, INT32, each(-1));
  index.add(TAG.fileDevice, INT32, each(1));
  index.add(
    TAG.fileInodes,
    INT32,
    files.map((_, n) => n + 1),
  );
  index.add(TAG.fileLanguages, TEXTS, each(''));
  index.add(TAG.folderIndexes, INT32, places.map(folderOf));
  index.add(
    TAG.baseNames,
    TEXTS,
    places.map((path) => path.slice(path.lastIndexOf('/') + 1)),
  );
  index.add(TAG.folderNames, TEXTS, folders);
  index.add(TAG.fileDigestKind, INT32, [SHA256]);
}

function signaturesOf(header, { payload, size }) {
  const index = new HeaderIndex(SIGNATURE_REGION);
  index.add(SIGNATURE_TAG.sha1, TEXT, hashOf('sha1', header));
  index.add(SIGNATURE_TAG.sha256, TEXT, hashOf('sha256', header));
  index.add(SIGNATURE_TAG.size, INT32, [header.length + statSync(payload).size]);
  index.add(SIGNATURE_TAG.payloadSize, INT32, [size]);
  return index.bytes();
}

/**
 * Returns the first 96 bytes (the lead). They only show old programs that the file is a package.
 */
function lead({ name, version, architecture }) {
  const bytes = Buffer.alloc(96);
  bytes.writeUInt32BE(0xedabeedb, 0);
  bytes.set([3, 0], 4);
  bytes.writeUInt16BE(architecture === 'aarch64' ? 19 : 1, 8);
  bytes.write(`${name}-${version}-1`.slice(0, 65), 10);
  bytes.writeUInt16BE(1, 76);
  bytes.writeUInt16BE(5, 78);
  return bytes;
}

function aligned(size) {
  return size + padding(size, 4).length;
}

/** Yields the files in the format of cpio that rpm reads ("newc"). */
async function* cpioOf(files, sizes, time) {
  for (const [n, { path, mode, from, text }] of files.entries()) {
    yield* cpioHead(path, { inode: n + 1, mode: 0o100000 | mode, time, size: sizes[n] });
    if (from === undefined) yield Buffer.from(text);
    else yield* createReadStream(from, { highWaterMark: 2 ** 20 });
    yield padding(sizes[n], 4);
  }
  yield* cpioHead('TRAILER!!!', { inode: 0, mode: 0, time: 0, size: 0 });
}

function* cpioHead(path, { inode, mode, time, size }) {
  const name = Buffer.from(`${path}\0`);
  const fields = [inode, mode, 0, 0, 1, time, size, 0, 0, 0, 0, name.length, 0];
  const hex = fields.map((value) => value.toString(16).padStart(8, '0')).join('');
  const head = Buffer.concat([Buffer.from(`070701${hex}`), name]);
  yield head;
  yield padding(head.length, 4);
}

function cpioSize(files, sizes) {
  const paths = [...files.map(({ path }) => path), 'TRAILER!!!'];
  const heads = paths.map((path) => aligned(110 + Buffer.byteLength(path) + 1));
  return [...heads, ...sizes.map(aligned)].reduce((total, size) => total + size, 0);
}

function padding(size, to) {
  return Buffer.alloc((to - (size % to)) % to);
}

function hashOf(kind, bytes) {
  return createHash(kind).update(bytes).digest('hex');
}

async function digestOf({ from, text }) {
  const hash = createHash('sha256');
  if (from === undefined) hash.update(text);
  else await pipeline(createReadStream(from), hash);
  return hash.digest('hex');
}
