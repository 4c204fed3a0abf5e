import { chmodSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CliFailure, errorCode } from '../program/failure.js';
import { fileReason, fileRemedy } from '../program/system-errors.js';
import { withLockFile } from './lock-file.js';
import { NewFile } from './new-file.js';

/**
 * A folder that only its owner may read (mode 0700). Its files have the mode 0600, and are always
 * replaced as a whole.
 */
export class PrivateFolder {
  constructor(readonly path: string) {}

  /** Returns the path of a file in the folder. */
  file(name: string): string {
    return join(this.path, name);
  }

  /**
   * Returns the content of a file; undefined if it does not exist.
   * @throws CliFailure if another account can read or change the file
   */
  read(name: string): string | undefined {
    const path = this.file(name);
    try {
      const { mode, uid } = statSync(path);
      assertPrivate(path, mode, uid);
      return readFileSync(path, 'utf8');
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error instanceof CliFailure ? error : fileFailure(path, error);
    }
  }

  /**
   * Returns the JSON object in a file, whose members are not checked; undefined if the file does
   * not exist.
   * @throws CliFailure that names a damaged file
   */
  readJson(name: string): object | undefined {
    const text = this.read(name);
    return text === undefined ? undefined : parseJson(text, this.file(name));
  }

  /**
   * Writes a file with mode 0600. It writes a new file and renames it, so that a reader sees either
   * the old content or the new one.
   */
  write(name: string, content: string | Uint8Array): void {
    const path = this.file(name);
    try {
      this.create(dirname(path));
      replaceFile(path, content, 0o600);
    } catch (error) {
      throw fileFailure(path, error);
    }
  }

  /** Writes an object as indented JSON, with mode 0600. */
  writeJson(name: string, document: object): void {
    this.write(name, `${JSON.stringify(document, null, 2)}\n`);
  }

  /** Removes a file, or a folder with all its files, if it exists. */
  remove(name: string): void {
    rmSync(this.file(name), { force: true, recursive: true });
  }

  /**
   * Runs a function under a lock. No other process of the same user runs a function under the same
   * name meanwhile.
   */
  async withLock<T>(name: string, act: () => Promise<T>): Promise<T> {
    try {
      this.create();
    } catch (error) {
      throw fileFailure(this.path, error);
    }
    return withLockFile(this.file(`${name}.lock`), act);
  }

  /**
   * Creates the folder, or a folder below it, with mode 0700. The mode of an existing folder is
   * corrected if others have access.
   */
  private create(path = this.path): void {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    if (process.platform !== 'win32' && (statSync(path).mode & 0o077) !== 0) {
      chmodSync(path, 0o700);
    }
  }
}

/** Replaces a file in one step, so that a reader sees either the old content or the new one. */
export function replaceFile(path: string, content: string | Uint8Array, mode: number): void {
  const file = new NewFile(path, mode);
  try {
    file.write(content);
    file.finish();
  } catch (error) {
    file.discard();
    throw error;
  }
}

/**
 * Parses the JSON object of a file.
 *
 * @throws CliFailure that names the file
 */
export function parseJson(text: string, path: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // A text that is no JSON gets the same failure as JSON that is no object.
  }
  throw new CliFailure(`${path} is damaged.`, `Remove it (rm '${path}') and run: svc login`);
}

/** Returns true if an error means that a file does not exist. */
export function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '');
}

/** Returns the failure for a file that cannot be read or written, with the reason in words. */
export function fileFailure(path: string, cause: unknown): CliFailure {
  const message = `${path} cannot be used: ${fileReason(cause)}.`;
  return new CliFailure(message, fileRemedy(cause), 1, { cause });
}

function assertPrivate(path: string, mode: number, owner: number): void {
  if (process.platform === 'win32') return;
  if ((mode & 0o077) !== 0) {
    throw new CliFailure(`Other accounts can read ${path}.`, `Run: chmod 600 '${path}'`);
  }
  const self = process.getuid?.();
  if (self !== undefined && owner !== self) {
    throw new CliFailure(`${path} belongs to another account.`, `Remove it and run: svc login`);
  }
}
