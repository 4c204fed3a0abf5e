import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileFailure, isMissing, replaceFile } from '../files/private-folder.js';
import { CliFailure, errorCode } from '../program/failure.js';

/** A text file of the user, as it was when the command read it. */
export interface TextFile {
  /** The path that programs use. It may be a symbolic link. */
  readonly path: string;
  /** The path of the file after all symbolic links were followed. */
  readonly target: string;
  /**
   * The content, each byte as one Latin-1 character, so that bytes that are not UTF-8 survive;
   * undefined if the file does not exist.
   */
  readonly bytes: string | undefined;
  readonly mode: number;
  readonly hasFolder: boolean;
}

/** The mode of a file that the command creates. */
const NEW_MODE = 0o600;
/** The largest number of symbolic links that are followed one after another. */
const MOST_LINKS = 40;

/**
 * Reads a text file of the user. Its `bytes` are undefined if the path leads to nothing.
 *
 * @throws CliFailure if the path leads to something that is not a file, that cannot be read, or
 *   that belongs to another account
 */
export function readTextFile(path: string): TextFile {
  try {
    const target = targetOf(path);
    const hasFolder = existsSync(dirname(target));
    const status = statSync(target, { throwIfNoEntry: false });
    if (!status) return { path, target, bytes: undefined, mode: NEW_MODE, hasFolder };
    const self = process.getuid?.();
    if (self !== undefined && status.uid !== self) {
      throw new CliFailure(`${path} belongs to another account.`, 'Run svc as its owner.');
    }
    const bytes = readFileSync(target, 'latin1');
    return { path, target, bytes, mode: status.mode & 0o7777, hasFolder };
  } catch (error) {
    throw error instanceof CliFailure ? error : fileFailure(path, error);
  }
}

/** The new content of a file, for {@link writeTextFile}. */
export interface NewContent {
  /** The content, each byte as one Latin-1 character; undefined removes the file. */
  readonly bytes: string | undefined;
  /** True if the folder of a removed file is also removed, provided that nothing else is in it. */
  readonly withFolder?: boolean;
}

/**
 * Replaces the content of a file in one step, or removes the file. The mode of the file and
 * symbolic links to it are kept.
 *
 * @throws CliFailure if the file changed since it was read, or cannot be written
 */
export function writeTextFile(file: TextFile, { bytes, withFolder }: NewContent): void {
  if (readTextFile(file.path).bytes !== file.bytes) {
    throw new CliFailure(`${file.path} changed meanwhile.`, 'Nothing was written. Run it again.');
  }
  try {
    if (bytes === undefined) {
      rmSync(file.target);
      if (withFolder === true) removeEmpty(dirname(file.target));
      return;
    }
    mkdirSync(dirname(file.target), { recursive: true, mode: 0o700 });
    replaceFile(file.target, Buffer.from(bytes, 'latin1'), file.mode);
  } catch (error) {
    throw fileFailure(file.path, error);
  }
}

/** Converts a text of the command to the form of {@link TextFile.bytes}. */
export function toBytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Converts the content of a {@link TextFile} to a text that can be shown. */
export function fromBytes(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/**
 * Follows the symbolic links of a path. The last link may lead to a file that does not exist yet.
 */
function targetOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  let target = path;
  for (let links = 0; links < MOST_LINKS && isLink(target); links += 1) {
    target = resolve(dirname(target), readlinkSync(target));
  }
  return target;
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) throw error;
  }
}
