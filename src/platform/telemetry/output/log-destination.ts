import fs from 'node:fs';
import type { DestinationStream } from 'pino';
import { systemClock } from '#platform/clock/clock.js';

/** The most characters of one write. Container engines read the log in blocks of 16 KiB. */
const BLOCK = 16 * 1024;

/** The milliseconds between two attempts to write to a reader that takes nothing yet. */
const RETRY_MS = 100;

/** The milliseconds for which the end of the process waits for a reader that takes nothing yet. */
const PATIENCE_MS = 2_000;

/** The milliseconds between two notices that log lines are lost. */
const NOTICE_MS = 60_000;

const NEW_LINE = 0x0a;

/**
 * Writes log lines to a file descriptor. Lines that arrive during a write follow together in the
 * next one. A line that cannot be written, for example because the disk is full, is dropped, and
 * the service goes on. At most once a minute, a line on standard error says that lines are lost. It
 * is our own code, because the destination of pino ends the process at such an error, or blocks it
 * without end.
 */
export class LogDestination implements DestinationStream {
  readonly #blocks: string[] = [];
  #isWriting = false;
  /** True if the reader has closed the pipe. Every later line is then dropped without a notice. */
  #isClosed = false;
  /** True if the last byte that was written is not the end of a line. */
  #isMidLine = false;
  #nextNotice = 0;

  /**
   * @param isSynchronous true if each line must be written before the program continues; otherwise
   *   the lines that wait are written when the process ends
   * @param file the functions that write, which a test replaces
   */
  constructor(
    private readonly fd: number,
    private readonly isSynchronous: boolean,
    private readonly file: Pick<typeof fs, 'write' | 'writeSync'> = fs,
  ) {
    if (!isSynchronous) process.on('exit', () => this.flushSync());
  }

  write(lines: string): void {
    if (this.#isClosed) return;
    const last = this.#blocks.length - 1;
    const waiting = this.#blocks[last];
    if (waiting !== undefined && waiting.length + lines.length <= BLOCK)
      this.#blocks[last] = waiting + lines;
    else this.#blocks.push(lines);
    if (this.isSynchronous) this.#writeAll(Number.POSITIVE_INFINITY);
    else if (!this.#isWriting) this.#writeNext();
  }

  /** Writes the lines that wait. Pino calls it after a line of the level `fatal`. */
  flushSync(): void {
    this.#writeAll(systemClock.monotonic() + PATIENCE_MS);
  }

  #writeNext(): void {
    const bytes = this.#nextBlock();
    this.#isWriting = bytes !== undefined;
    if (bytes) this.#send(bytes);
  }

  #send(bytes: Buffer): void {
    this.file.write(this.fd, bytes, (error, count) => {
      if (error && isBusy(error)) {
        setTimeout(() => this.#send(bytes), RETRY_MS);
      } else if (error) {
        this.#drop(error, (notice) => this.file.write(2, notice, () => undefined));
        this.#writeNext();
      } else {
        const rest = this.#restOf(bytes, count);
        if (rest.length > 0) this.#send(rest);
        else this.#writeNext();
      }
    });
  }

  /** @param deadline the latest time of an attempt to write to a busy reader */
  #writeAll(deadline: number): void {
    for (let bytes = this.#nextBlock(); bytes; bytes = this.#nextBlock()) {
      try {
        this.#writeWhole(bytes, deadline);
      } catch (error) {
        this.#drop(error as NodeJS.ErrnoException, (notice) => this.file.writeSync(2, notice));
      }
    }
  }

  #writeWhole(bytes: Buffer, deadline: number): void {
    for (let rest = bytes; rest.length > 0;) {
      try {
        rest = this.#restOf(rest, this.file.writeSync(this.fd, rest));
      } catch (error) {
        const mayRetry = isBusy(error as NodeJS.ErrnoException);
        if (!mayRetry || systemClock.monotonic() >= deadline) throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
      }
    }
  }

  /**
   * Takes the lines for the next write; undefined if none wait. If the last line was cut off, a
   * line break comes first, so that the next line begins on its own line.
   */
  #nextBlock(): Buffer | undefined {
    const block = this.#blocks.shift();
    if (block === undefined) return undefined;
    return Buffer.from(this.#isMidLine ? `\n${block}` : block);
  }

  #restOf(bytes: Buffer, count: number): Buffer {
    if (count > 0) this.#isMidLine = bytes[count - 1] !== NEW_LINE;
    return bytes.subarray(count);
  }

  #drop({ code }: NodeJS.ErrnoException, tell: (notice: string) => void): void {
    if (code === 'EPIPE') {
      this.#isClosed = true;
      this.#blocks.length = 0;
      return;
    }
    const now = systemClock.monotonic();
    if (now < this.#nextNotice) return;
    this.#nextNotice = now + NOTICE_MS;
    try {
      tell(`svc-server: log lines are lost, because they cannot be written (${code})\n`);
    } catch {
      // Standard error may be on the same full disk.
    }
  }
}

/** Returns true if the reader of a pipe or terminal takes nothing yet. */
function isBusy({ code }: NodeJS.ErrnoException): boolean {
  return code === 'EAGAIN' || code === 'EBUSY';
}
