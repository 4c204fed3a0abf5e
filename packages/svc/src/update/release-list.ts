import { isSignatureOf, parseSshPublicKey, readFileSignature, SshFormatError } from '@svc/openssh';
import { CliFailure } from '../program/failure.js';
import { compareVersions } from '../program/version.js';

/** The lines of `packages/svc/release-keys`. The bundler writes them: see `rolldown.config.js`. */
declare const SVC_RELEASE_KEYS: readonly string[] | undefined;

/** The purpose for which the list of a release is signed: `ssh-keygen -Y sign -n file`. */
const NAMESPACE = 'file';

/** Matches a line of `sha256sum`: the hash, two spaces, and a name without a path. */
const LINE = /^([0-9a-f]{64}) {2}([A-Za-z0-9][A-Za-z0-9._+~-]{0,127})$/;

/** The name of a file of the command: an executable, compressed or for Windows, or the script. */
const COMMAND_FILE =
  /^svc-(\d{1,6}\.\d{1,6}\.\d{1,6}(?:-rc\.\d{1,6})?)(?:-(?:linux|darwin)-(?:x64|arm64)\.gz|-win-x64\.exe|\.mjs)$/;

/** The files of the command in the list of one release. */
export interface ReleaseList {
  readonly version: string;
  /** The SHA-256 of each file in hexadecimal, by the name of the file. */
  readonly files: ReadonlyMap<string, string>;
}

/**
 * Returns the public keys of the maintainers, in the SSH wire encoding, that are in this command.
 *
 * @throws CliFailure if the command was built without a key
 */
export function releaseKeys(): readonly Buffer[] {
  const lines = typeof SVC_RELEASE_KEYS === 'undefined' ? [] : SVC_RELEASE_KEYS;
  if (lines.length > 0) return lines.map((line) => parseSshPublicKey(line).blob);
  const message =
    'This svc was built without a key of the maintainers, so it cannot check an update.';
  throw new CliFailure(message, 'Install it again, as the page /install of your server says.');
}

/**
 * Reads the list of a release, after its signature was verified.
 *
 * @param content the bytes of `SHA256SUMS`
 * @param signature the text of `SHA256SUMS.sig`
 * @param keys the keys that are trusted, in the SSH wire encoding
 * @throws CliFailure if the signature is not by one of the keys for a file, or the list is not that
 *   of one release
 */
export function readReleaseList(
  content: Buffer,
  signature: string,
  keys: readonly Buffer[],
): ReleaseList {
  const fault = signatureFault(content, signature, keys);
  if (fault !== undefined) throw refused(fault);
  const files = new Map<string, string>();
  const versions = new Set<string>();
  for (const [name, sha256] of linesOf(content.toString('latin1'))) {
    const version = COMMAND_FILE.exec(name)?.[1];
    if (version === undefined) continue;
    versions.add(version);
    files.set(name, sha256);
  }
  const [version, ...others] = versions;
  if (version === undefined) throw refused('it names no file of svc');
  if (others.length > 0) throw refused('it names files of several versions');
  return { version, files };
}

function signatureFault(content: Buffer, signature: string, keys: readonly Buffer[]) {
  try {
    const read = readFileSignature(signature);
    if (!keys.some((key) => key.equals(read.publicBlob))) {
      return 'its signature is by a key that this svc does not know';
    }
    if (read.namespace !== NAMESPACE) return 'its signature is for another purpose';
    return isSignatureOf(read, content) ? undefined : 'its signature is of another list';
  } catch (error) {
    if (!(error instanceof SshFormatError)) throw error;
    return 'its signature is damaged';
  }
}

/**
 * Reads the lines of a list. One wrong line, or two lines with the same name, makes the whole list
 * wrong.
 */
function linesOf(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const line of text.replace(/\n$/, '').split('\n')) {
    const [, sha256, name] = LINE.exec(line) ?? [];
    if (sha256 === undefined || name === undefined) throw refused('a line of it is damaged');
    if (found.has(name)) throw refused('it names a file twice');
    found.set(name, sha256);
  }
  return found;
}

function refused(fault: string): CliFailure {
  const message = `The list of the release is refused: ${fault}. Nothing was changed.`;
  return new CliFailure(message, 'Try again later. If it stays, tell an admin of your server.');
}

/**
 * Checks that a release is newer than the command.
 *
 * @returns false if it is the same version
 * @throws CliFailure if it is older, because an attacker can offer an old list with its valid
 *   signature
 */
export function isNewer({ version }: ReleaseList, own: string, source: string): boolean {
  const order = compareVersions(version, own);
  if (order > 0) return true;
  if (order === 0) return false;
  const message = `${source} offers svc ${version}, which is older than this one, ${own}. Nothing was changed.`;
  throw new CliFailure(message, 'To go back to the version before, run: svc update --undo');
}
