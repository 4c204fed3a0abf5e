import fs from 'node:fs';
import type { DestinationStream } from 'pino';
import { systemClock } from '#platform/clock/clock.js';

/**
 * The most bytes of one write, unless a single line is longer. The kernel writes up to 4,096 bytes
 * (PIPE_BUF) to a pipe as a whole or not at all. So the lines of workers, which share a pipe, do
 * not mix. One byte is left for a line break.
 */
const BLOCK = 4_095;

/** The milliseconds between two attempts to write to a reader that takes nothing yet. */
const RETRY_MS = 100;

/** The milliseconds for which the end of the process waits for a reader that takes nothing yet. */
const PATIENCE_MS = 2_000;

/**
 * The milliseconds between two attempts at the end of the process. A pipe has room for 64 KiB, so
 * that this pause limits how much a quick reader gets in time.
 */
const RETRY_AT_END_MS = 5;

/**
 * The most characters that wait for a reader that takes nothing. The next lines are dropped, so
 * that a reader that stands still does not use up the memory.
 */
const MOST_WAITING = 16 * 1024 * 1024;

/** The milliseconds between two notices that log lines are lost. */
const NOTICE_MS = 60_000;

const NEW_LINE = 0x0a;

/** The destinations that have lines which are not written yet. */
const writing = new Set<LogDestination>();

let isFlushedAtExit = false;

/**
 * Makes the end of the process write the lines that wait. All destinations share one listener,
 * because Node warns of a leak from the eleventh listener on.
 */
function flushAtExit(): void {
  if (isFlushedAtExit) return;
  isFlushedAtExit = true;
  process.on('exit', () => writing.forEach((destination) => destination.flushSync()));
}

/**
 * Writes log lines to a file descriptor. Lines that arrive during a write follow together in the
 * next one. If the reader of a pipe takes nothing, they wait for it, and the service goes on. A
 * line that cannot be written, for example because the disk is full, is dropped. At most once a
 * minute, a line on standard error says so. It is our own code, because the destination of pino
 * ends the process at such an error, or blocks it without end.
 */
export class LogDestination implements DestinationStream {
  readonly #blocks: string[] = [];
  /** The number of bytes in the last of `#blocks`. */
  #bytesOfLast = 0;
  /** The number of characters in `#blocks`. */
  #waiting = 0;
  #isWriting = false;
  /** The bytes that the reader did not take, until the next attempt. */
  #refused: Buffer | undefined;
  /** True if the reader has closed the pipe. Every later line is then dropped without a notice. */
  #isClosed = false;
  /** True if the last byte that was written is not the end of a line. */
  #isMidLine = false;
  #nextNotice = 0;

  /**
   * @param isSynchronous true if each line is written before the program continues, unless the
   *   reader takes nothing. The lines that wait are written when the process ends
   * @param file the functions that write, which a test replaces
   */
  constructor(
    private readonly fd: number,
    private readonly isSynchronous: boolean,
    private readonly file: Pick<typeof fs, 'write' | 'writeSync'> = fs,
  ) {
    openPipes();
    flushAtExit();
  }

  write(lines: string): void {
    if (this.#isClosed) return;
    if (this.#waiting + lines.length > MOST_WAITING) {
      this.#tellLost('EAGAIN', (notice) => this.file.write(2, notice, () => undefined));
      return;
    }
    this.#waiting += lines.length;
    if (Buffer.byteLength(lines) <= BLOCK) this.#append(lines);
    else for (const line of lines.split(/(?<=\n)/)) this.#append(line);
    if (this.#isWriting) return;
    if (this.isSynchronous) this.#writeAtOnce();
    else this.#writeNext();
  }

  /** Writes the lines that wait. Pino calls it after a line of the level `fatal`. */
  flushSync(): void {
    const deadline = systemClock.monotonic() + PATIENCE_MS;
    const refused = this.#refused;
    if (refused) this.#setWriting(false); // nothing but the next attempt was under way
    this.#refused = undefined;
    for (let bytes = refused ?? this.#nextBlock(); bytes; bytes = this.#nextBlock()) {
      this.#writeUntil(deadline, bytes);
    }
  }

  /** Adds a line, or a few short ones, to the last block if it has room, or else to a new block. */
  #append(lines: string): void {
    const bytes = Buffer.byteLength(lines);
    const last = this.#blocks.length - 1;
    const waiting = this.#blocks[last];
    if (waiting !== undefined && this.#bytesOfLast + bytes <= BLOCK) {
      this.#blocks[last] = waiting + lines;
      this.#bytesOfLast += bytes;
      return;
    }
    this.#blocks.push(lines);
    this.#bytesOfLast = bytes;
  }

  #setWriting(isWriting: boolean): void {
    this.#isWriting = isWriting;
    if (isWriting) writing.add(this);
    else writing.delete(this);
  }

  #writeNext(): void {
    const bytes = this.#nextBlock();
    this.#setWriting(bytes !== undefined);
    if (bytes) this.#send(bytes);
  }

  #send(bytes: Buffer): void {
    this.file.write(this.fd, bytes, (error, count) => {
      if (error && isBusy(error)) {
        this.#sendLater(bytes);
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

  #sendLater(bytes: Buffer): void {
    this.#refused = bytes;
    const again = () => {
      if (this.#refused !== bytes) return; // they were written meanwhile
      this.#refused = undefined;
      this.#send(bytes);
    };
    setTimeout(again, RETRY_MS).unref();
  }

  #writeAtOnce(): void {
    for (let bytes = this.#nextBlock(); bytes; bytes = this.#nextBlock()) {
      const rest = this.#writeNow(bytes);
      if (!rest) continue;
      this.#setWriting(true);
      this.#sendLater(rest);
      return;
    }
  }

  /** @param deadline the latest time of an attempt to write to a busy reader */
  #writeUntil(deadline: number, bytes: Buffer): void {
    for (let rest = this.#writeNow(bytes); rest; rest = this.#writeNow(rest)) {
      if (systemClock.monotonic() >= deadline) {
        this.#tellLost('EAGAIN', (notice) => this.file.writeSync(2, notice));
        return;
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_AT_END_MS);
    }
  }

  /** Writes bytes before the program continues. Returns the rest if the reader takes no more. */
  #writeNow(bytes: Buffer): Buffer | undefined {
    let rest = bytes;
    try {
      while (rest.length > 0) rest = this.#restOf(rest, this.file.writeSync(this.fd, rest));
    } catch (error) {
      if (isBusy(error as NodeJS.ErrnoException)) return rest;
      this.#drop(error as NodeJS.ErrnoException, (notice) => this.file.writeSync(2, notice));
    }
    return undefined;
  }

  /**
   * Takes the lines for the next write; undefined if none wait. If the last line was cut off, a
   * line break comes first, so that the next line begins on its own line.
   */
  #nextBlock(): Buffer | undefined {
    const block = this.#blocks.shift();
    if (block === undefined) return undefined;
    this.#waiting -= block.length;
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
      this.#waiting = 0;
      return;
    }
    this.#tellLost(code, tell);
  }

  #tellLost(code: string | undefined, tell: (notice: string) => void): void {
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

/**
 * Makes Node open standard output and standard error. If they are pipes, a write to them then fails
 * with EAGAIN while the reader takes nothing. Before that, the write itself waits for the reader.
 */
function openPipes(): void {
  for (const name of ['stdout', 'stderr'] as const) Reflect.get(process, name);
}
