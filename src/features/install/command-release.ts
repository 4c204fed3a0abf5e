import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { isSignatureOf, readFileSignature, SshFormatError } from '@svc/openssh';

/**
 * The name of the list, a file with the hash of each file of a release, and the name of the list's
 * signature.
 */
const LIST = 'SHA256SUMS';
const SIGNATURE = 'SHA256SUMS.sig';

/** The largest list and the largest signature in bytes. The `svc` command has the same limits. */
const MOST = { [LIST]: 64 * 1024, [SIGNATURE]: 8 * 1024 };

/** A line of `sha256sum`: the hash, two spaces, and a name without a path. */
const LINE = /^([0-9a-f]{64}) {2}([A-Za-z0-9][A-Za-z0-9._+~-]{0,127})$/;

/**
 * Matches the name of a file with the `svc` command. The name has the version and, for an
 * executable, the system and the processor. The script for Node (`.mjs`) names no system.
 */
const COMMAND_FILE =
  /^svc-(\d+\.\d+\.\d+(?:-rc\.\d+)?)(?:-((?:linux|darwin)-(?:x64|arm64))\.gz|-(win-x64)\.exe|\.mjs)$/;

/** A file of a release that clients can download. */
export interface ReleasedFile {
  readonly name: string;
  /** The path of the file on the disk, with symbolic links resolved. */
  readonly path: string;
  /** The size in bytes. */
  readonly size: number;
  /** The SHA-256 in hexadecimal. */
  readonly sha256: string;
  /** The system and the processor, such as `linux-x64`; undefined for the script and the list. */
  readonly system: string | undefined;
}

/** The files of one release of the `svc` command. */
export interface CommandRelease {
  readonly version: string;
  /** Every file that clients can download, by its name. */
  readonly files: ReadonlyMap<string, ReleasedFile>;
}

/**
 * Reads the files that a release has for the `svc` command, and compares each with the signed list
 * of hashes. Clients can download only files that are both in the list and in the folder. The
 * signature must fit the list, but any key may have made it: the client checks that it trusts the
 * key.
 *
 * @throws Error with one line for the operator, which begins with the name of the variable
 */
export async function readCommandRelease(folder: string): Promise<CommandRelease> {
  try {
    return await read(folder);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`SVC_CLIENT_RELEASE_DIR: ${folder}: ${reason}`, { cause: error });
  }
}

async function read(folder: string): Promise<CommandRelease> {
  const root = await realpath(folder);
  const own = await Promise.all([locate(root, LIST), locate(root, SIGNATURE)]);
  const [list, signature] = own;
  if (!list || !signature) throw new Error(`${LIST} or ${SIGNATURE} is missing`);
  const content = await readFile(list.path);
  assertSigned(content, await readFile(signature.path, 'latin1'));
  const listed = commandFiles(content.toString('latin1'));
  const located = await Promise.all(
    listed.map(async (one) => ({ ...one, file: await locate(root, one.name, one.system) })),
  );
  const files = located.flatMap(({ file, sha256 }) => {
    if (file && file.sha256 !== sha256) throw new Error(`${file.name} is another file than listed`);
    return file ?? [];
  });
  const versions = [...new Set(listed.map(({ version }) => version))];
  const [version] = versions;
  if (version === undefined || files.length === 0) throw new Error('no file of svc is in it');
  if (versions.length > 1) throw new Error(`it mixes the versions ${versions.join(', ')}`);
  return { version, files: new Map([list, signature, ...files].map((file) => [file.name, file])) };
}

/** Returns the lines of a list that name files of the `svc` command. */
function commandFiles(text: string) {
  const lines = text.replace(/\n$/, '').split('\n');
  const names = new Set<string>();
  return lines.flatMap((line) => {
    const [, sha256 = '', name = ''] = LINE.exec(line) ?? [];
    if (name === '' || names.has(name)) throw new Error(`a line of ${LIST} is damaged or double`);
    names.add(name);
    const [, version, compressed, windows] = COMMAND_FILE.exec(name) ?? [];
    return version === undefined ? [] : [{ name, sha256, version, system: compressed ?? windows }];
  });
}

/**
 * Finds a file of the folder and computes its hash; undefined if the file does not exist.
 * @throws Error if a symbolic link leads out of the folder, or if the file is no ordinary file or
 *   is too large
 */
async function locate(
  root: string,
  name: string,
  system?: string,
): Promise<ReleasedFile | undefined> {
  const path = await realpath(join(root, name)).catch((error: unknown) => {
    if ((error as { code?: string }).code === 'ENOENT') return undefined;
    throw error;
  });
  if (path === undefined) return undefined;
  if (!path.startsWith(root.endsWith(sep) ? root : root + sep)) {
    throw new Error(`${name} is a link that leads out of the folder`);
  }
  const found = await stat(path);
  if (!found.isFile()) throw new Error(`${name} is no file`);
  const most = Object.hasOwn(MOST, name) ? MOST[name as keyof typeof MOST] : Infinity;
  if (found.size > most) throw new Error(`${name} is too large`);
  return { name, path, size: found.size, sha256: await sha256Of(path), system };
}

async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(path)) hash.update(part as Buffer);
  return hash.digest('hex');
}

/**
 * Checks that the signature is valid for this list and was made for files (namespace `file`). It is
 * verified with the public key that the signature itself contains.
 */
function assertSigned(content: Buffer, text: string): void {
  try {
    const signature = readFileSignature(text);
    if (signature.namespace === 'file' && isSignatureOf(signature, content)) return;
  } catch (error) {
    if (!(error instanceof SshFormatError)) throw error;
  }
  throw new Error(`${SIGNATURE} is no signature of this ${LIST}`);
}
