import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  copyFileSync,
  createReadStream,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { withLockFile } from '../files/lock-file.js';
import { NewFile } from '../files/new-file.js';
import { fileFailure } from '../files/private-folder.js';
import { randomId } from '../program/clock.js';
import { CliFailure, errorCode } from '../program/failure.js';
import { compareVersions } from '../program/version.js';
import {
  assertOwn,
  assertReplaceable,
  fileInRelease,
  previousPath,
  type InstalledProgram,
} from './installed-program.js';
import type { ReleaseList } from './release-list.js';
import { tooLarge, type ReleaseSource } from './release-source.js';

/** The largest file of a release, as it is fetched and uncompressed, in bytes. */
const LARGEST = { fetched: 256 * 2 ** 20, uncompressed: 512 * 2 ** 20 };

/** The longest time in milliseconds in which a program prints its version. */
const TIME_TO_START = 30_000;

/** The beginning of the names of files that an interrupted update leaves. */
const DRAFT = '.svc-update-';

/** The versions before and after a replacement. */
export interface Replaced {
  readonly from: string;
  readonly to: string;
}

/**
 * Replaces the file of the command by that of a release. The new file is first fetched, compared
 * with its hash, and run for its version. If a step fails, the old file stays. After the
 * replacement, the old file is kept beside the new one.
 *
 * @param largest the largest file as it is fetched and uncompressed, in bytes
 * @returns undefined if another process has installed the release, or a newer one, meanwhile
 * @throws CliFailure for every fault
 */
export function replaceProgram(
  program: InstalledProgram,
  list: ReleaseList,
  source: ReleaseSource,
  largest = LARGEST,
): Promise<Replaced | undefined> {
  const name = fileInRelease(program, list.version);
  const sha256 = list.files.get(name);
  if (sha256 === undefined) {
    const message = `svc ${list.version} has no file ${name} for this machine.`;
    throw new CliFailure(message, 'Ask an admin of your server.');
  }
  const mode = assertReplaceable(program);
  return underLock(program, async (draft) => {
    const from = await versionOf(program, program.path);
    if (compareVersions(list.version, from) <= 0) return undefined;
    if (name.endsWith('.gz')) {
      const compressed = { path: `${draft}.gz`, mode: 0o600, most: largest.fetched };
      await fetch(compressed, { name, sha256 }, source);
      const fault = tooLarge(source, name);
      await uncompress(compressed.path, { path: draft, mode, most: largest.uncompressed, fault });
    } else await fetch({ path: draft, mode, most: largest.fetched }, { name, sha256 }, source);
    await assertRuns(program, draft, list.version);
    putInPlace(program, draft);
    return { from, to: list.version };
  });
}

/**
 * Exchanges the file of the command with the file that the last update kept.
 *
 * @throws CliFailure if there is none, or it does not run
 */
export function restorePrevious(program: InstalledProgram): Promise<Replaced> {
  assertReplaceable(program);
  const previous = previousPath(program);
  if (!existsSync(previous)) {
    const message = `There is no version before this one: ${previous} does not exist.`;
    throw new CliFailure(
      message,
      'Install an older version as the page /install of a server says.',
    );
  }
  assertOwn(previous);
  return underLock(program, async (draft) => {
    const from = await versionOf(program, program.path).catch(() => 'unknown');
    const to = await versionOf(program, previous);
    linkOrCopy(previous, draft);
    putInPlace(program, draft);
    return { from, to };
  });
}

/**
 * Runs a function while no other process updates the same file. The function gets the path of a
 * draft beside the file. Drafts are removed afterwards, and so are those of an interrupted update.
 */
async function underLock<T>(
  { path }: InstalledProgram,
  act: (draft: string) => Promise<T>,
): Promise<T> {
  const folder = dirname(path);
  try {
    return await withLockFile(join(folder, '.svc-update.lock'), async () => {
      removeDrafts(folder);
      try {
        return await act(join(folder, `${DRAFT}${randomId()}${extname(path)}`));
      } finally {
        removeDrafts(folder);
      }
    });
  } catch (error) {
    if (error instanceof CliFailure || errorCode(error) === undefined) throw error;
    throw fileFailure(path, error);
  }
}

function removeDrafts(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(DRAFT)) continue;
    try {
      rmSync(join(folder, name), { force: true });
    } catch {
      // Windows keeps the file of a program that runs. The next update removes it.
    }
  }
}

/** A file that is written: its path, its mode, and its largest size in bytes. */
interface Draft {
  readonly path: string;
  readonly mode: number;
  readonly most: number;
}

/** Fetches a file of a release, and compares it with its hash. */
async function fetch(
  draft: Draft,
  { name, sha256 }: { readonly name: string; readonly sha256: string },
  source: ReleaseSource,
): Promise<void> {
  const hash = createHash('sha256');
  const fault = tooLarge(source, name);
  await write(await source.open(name, 'file'), { ...draft, fault }, (part) => hash.update(part));
  if (hash.digest('hex') === sha256) return;
  const message = `${name} does not have the SHA-256 of the signed list. Nothing was changed.`;
  throw new CliFailure(message, 'Try again later. If it stays, tell an admin of your server.');
}

/**
 * Uncompresses a file of gzip.
 * @throws CliFailure if it is damaged; the given fault if it is too large
 */
async function uncompress(
  compressed: string,
  draft: Draft & { readonly fault: CliFailure },
): Promise<void> {
  const gunzip = createGunzip();
  pipeline(createReadStream(compressed), gunzip, () => {}); // a fault reaches the reader of gunzip
  try {
    await write(gunzip, draft);
  } catch (error) {
    if (!errorCode(error)?.startsWith('Z_')) throw error;
    const message = 'The file of the release is damaged: it is not whole. Nothing was changed.';
    throw new CliFailure(message, 'Tell an admin of your server.', 1, { cause: error });
  }
}

/**
 * Writes a file in parts. At the end the whole file is on the disk (fsync).
 * @throws the failure `fault` if the file is larger than `most` bytes
 */
async function write(
  parts: AsyncIterable<Uint8Array>,
  { path, mode, most, fault }: Draft & { readonly fault: CliFailure },
  onPart?: (part: Uint8Array) => void,
): Promise<void> {
  const file = new NewFile(path, mode);
  try {
    let size = 0;
    for await (const part of parts) {
      size += part.length;
      if (size > most) throw fault;
      onPart?.(part);
      file.write(part);
    }
    file.finish();
  } finally {
    file.discard();
  }
}

/** Checks that a new file runs on this machine, and is the version that the list says. */
async function assertRuns(program: InstalledProgram, path: string, version: string): Promise<void> {
  const told = await versionOf(program, path);
  if (told === version) return;
  const message = `The new file says that it is svc ${told}, and not ${version}. Nothing was changed.`;
  throw new CliFailure(message, 'Tell an admin of your server.');
}

/** Runs a file of the command, and returns the version that it prints. */
function versionOf({ isExecutable }: InstalledProgram, path: string): Promise<string> {
  const [command, args] = isExecutable ? [path, []] : [process.execPath, [path]];
  return new Promise((done, fail) => {
    const options = { timeout: TIME_TO_START, maxBuffer: 4096, windowsHide: true };
    execFile(command, [...args, '--version'], options, (error, stdout) => {
      const version = /^svc (\S{1,40})\r?\n$/.exec(stdout)?.[1];
      if (!error && version !== undefined && !Number.isNaN(compareVersions(version, version))) {
        done(version);
        return;
      }
      const message = `${basename(path)} does not run on this machine. Nothing was changed.`;
      fail(new CliFailure(message, 'Tell an admin of your server.', 1, { cause: error }));
    });
  });
}

/**
 * Gives a draft the name of the command, and keeps the old file. Under Linux and macOS a whole file
 * has the name at any time. Windows can rename a program that runs, and cannot replace it. So for a
 * moment no file has the name there.
 */
function putInPlace(program: InstalledProgram, draft: string): void {
  const { path } = program;
  const previous = previousPath(program);
  const kept = join(dirname(path), `${DRAFT}${randomId()}`);
  if (program.platform === 'win32') {
    if (existsSync(previous)) renameSync(previous, kept);
    renameSync(path, previous);
    try {
      renameSync(draft, path);
    } catch (error) {
      renameSync(previous, path);
      if (existsSync(kept)) renameSync(kept, previous);
      throw error;
    }
    return;
  }
  linkOrCopy(path, kept);
  renameSync(kept, previous);
  renameSync(draft, path);
  syncFolder(dirname(path));
}

/** Gives a file a second name, or copies it if the file system has no hard links. */
function linkOrCopy(path: string, other: string): void {
  try {
    linkSync(path, other);
  } catch {
    copyFileSync(path, other, constants.COPYFILE_EXCL);
  }
}

/** Writes the names of a folder to the disk, so that they are still there after a loss of power. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } catch {
    // Some network file systems cannot write a folder to the disk.
  } finally {
    closeSync(descriptor);
  }
}
