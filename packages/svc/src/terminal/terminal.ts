import { writeSync } from 'node:fs';
import { CliFailure, errorCode, STATUS } from '../program/failure.js';
import { fileReason } from '../program/system-errors.js';

/** The failure if standard output cannot be written, for example because the disk is full. */
export class OutputFailure extends CliFailure {
  constructor(cause: unknown) {
    const message = `The output cannot be written: ${fileReason(cause)}.`;
    super(message, 'Check the file to which it goes, and run it again.', STATUS.failed, { cause });
  }
}

/** The standard streams of the command, and the questions that it asks the user. */
export class Terminal {
  constructor(
    /** True if the option `--json` asks for the result as one JSON document. */
    readonly isJson: boolean,
  ) {}

  /**
   * True if a person can answer questions, because standard input and standard error are a
   * terminal.
   */
  get isInteractive(): boolean {
    return this.isAttended && !this.isJson;
  }

  /**
   * True if standard input and standard error are a terminal, also with `--json`: a person can
   * touch the security key, which needs no answer.
   */
  get isAttended(): boolean {
    return process.stdin.isTTY && process.stderr.isTTY;
  }

  /**
   * True if a person reads standard error. It is enough for a plugin, whose standard input belongs
   * to another program.
   */
  get isWatched(): boolean {
    return process.stderr.isTTY && !this.isJson;
  }

  /** Prints a line for people on standard output. With `--json` it prints nothing. */
  print(line = ''): void {
    if (!this.isJson) write(1, withEnd(line));
  }

  /** True if the program that read the output has ended, so that further output has no reader. */
  get isReaderGone(): boolean {
    return isReaderGone;
  }

  /** Prints the result of a command: the document with `--json`, otherwise the lines. */
  result(document: object, lines: readonly string[]): void {
    write(1, this.isJson ? `${JSON.stringify(document, null, 2)}\n` : lines.map(withEnd).join(''));
  }

  /**
   * Prints a text without any change, for a program that reads the output, such as git or kubectl.
   */
  raw(text: string): void {
    write(1, text);
  }

  /**
   * Prints the text of an answer: unchanged for a program that reads it, and without control
   * characters on a terminal.
   */
  answer(text: string): void {
    const shown = process.stdout.isTTY ? harmless(text) : text;
    write(1, shown === '' || shown.endsWith('\n') ? shown : `${shown}\n`);
  }

  /** Prints a line on standard error: about progress, a warning, or an error. */
  warn(line: string): void {
    write(2, withEnd(line));
  }

  /** Prints a line on standard error if it is a terminal. */
  progress(line: string): void {
    if (process.stderr.isTTY) write(2, withEnd(line));
  }

  /**
   * Asks a question, and returns the line that the user types; empty if the input ends.
   * @throws CliFailure if there is no terminal
   */
  async ask(question: string): Promise<string> {
    if (!this.isInteractive) {
      throw new CliFailure('This needs an answer.', 'Run it in a terminal, or add --yes.');
    }
    return (await answerTo(question))?.trim() ?? '';
  }

  /** Asks a question. Returns true for `y` or `yes`, and false for any other answer. */
  async confirm(question: string): Promise<boolean> {
    return /^y(?:es)?$/i.test(await this.ask(`${question} [y/N] `));
  }

  /**
   * Asks a question to which Enter means yes. The caller has shown the user what the question is
   * about. If the input ends, the answer is no.
   */
  async confirmByEnter(question: string): Promise<boolean> {
    if (!this.isInteractive) return false;
    const answer = await answerTo(`${question} [Y/n] `);
    return answer !== undefined && /^(?:y(?:es)?)?$/i.test(answer.trim());
  }
}

/** Reads the answer to a question; undefined if the input ends first. */
async function answerTo(question: string): Promise<string | undefined> {
  const { createInterface } = await import('node:readline/promises');
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  const end = new Promise<undefined>((done) => prompt.once('close', () => done(undefined)));
  try {
    return await Promise.race([prompt.question(harmless(question)), end]);
  } finally {
    prompt.close();
  }
}

const withEnd = (line: string) => `${harmless(line)}\n`;

/**
 * Removes the characters that control a terminal or change the direction of text, because texts of
 * the server may contain them.
 */
function harmless(text: string): string {
  return text.replaceAll(/(?![\n\t])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu, '');
}

/** True once a program that read the standard output, such as `head`, has ended. */
let isReaderGone = false;

/**
 * Writes a whole text. If the reader of the output is slow or has ended, no exception is thrown.
 *
 * @throws OutputFailure if standard output cannot be written, for example because the disk is full
 */
function write(descriptor: 1 | 2, text: string): void {
  const bytes = Buffer.from(text);
  for (let sent = 0; sent < bytes.length;) {
    try {
      sent += writeSync(descriptor, bytes, sent);
    } catch (error) {
      const code = errorCode(error);
      if (code === 'EAGAIN') continue;
      if (descriptor === 2) return; // no place is left in which the command could say so
      if (code !== 'EPIPE') throw new OutputFailure(error);
      isReaderGone = true;
      return;
    }
  }
}
