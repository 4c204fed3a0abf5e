import { chmodSync, closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { randomId } from '../program/clock.js';

/**
 * A file that is written in parts under a temporary name, and gets its real name when it is whole.
 * A reader sees either the old content or the new one, and never a part.
 */
export class NewFile {
  readonly #draft: string;
  readonly #descriptor: number;
  #isOpen = true;

  /**
   * Creates the draft beside the file.
   *
   * @throws the error of the system
   */
  constructor(
    private readonly path: string,
    private readonly mode: number,
  ) {
    this.#draft = `${path}.${randomId()}`;
    this.#descriptor = openSync(this.#draft, 'wx', mode);
  }

  /** Appends a part of the content to the draft. */
  write(content: string | Uint8Array): void {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    for (let sent = 0; sent < bytes.length;) sent += writeSync(this.#descriptor, bytes, sent);
  }

  /** Gives the whole file its name, in place of an older file. */
  finish(): void {
    fsyncSync(this.#descriptor);
    this.#close();
    chmodSync(this.#draft, this.mode);
    renameSync(this.#draft, this.path);
  }

  /** Removes the draft. After `finish` it does nothing. */
  discard(): void {
    this.#close();
    rmSync(this.#draft, { force: true });
  }

  #close(): void {
    if (this.#isOpen) closeSync(this.#descriptor);
    this.#isOpen = false;
  }
}
