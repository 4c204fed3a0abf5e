import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';

/** The terminal of the operator: the lines that a command writes and reads. */
export interface OperatorTerminal {
  /** Writes a line of the result to standard output. */
  print(line: string): void;
  /** Writes a line that is no part of the result, such as a warning, to standard error. */
  say(line: string): void;
  /**
   * Writes a question to standard error, and returns the next line of standard input; undefined if
   * standard input has ended.
   */
  ask(question: string): Promise<string | undefined>;
  /** Does the same as `ask`, and does not show the answer on the terminal. */
  askSecretly(question: string): Promise<string | undefined>;
}

/**
 * The characters that a terminal would act on or hide, such as control characters and changes of
 * the direction of writing.
 */
const OBEYED = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/**
 * Escapes the characters of names and errors that a terminal would act on. The escapes are those of
 * JSON, so that a printed JSON document keeps its meaning.
 */
export function visible(text: string): string {
  return text.replaceAll(OBEYED, (found) => (found === '\n' ? found : escaped(found)));
}

function escaped(text: string): string {
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/** The standard streams of a process. */
export interface Streams {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

/** Returns a terminal that uses the given streams. */
export function terminalOf(streams: Streams): OperatorTerminal {
  return {
    print: (line) => void streams.stdout.write(`${visible(line)}\n`),
    say: (line) => void streams.stderr.write(`${visible(line)}\n`),
    ask: (question) => readAnswer(question, streams),
    askSecretly: (question) => readSecret(question, streams),
  };
}

async function readAnswer(
  question: string,
  { stdin, stderr }: Streams,
): Promise<string | undefined> {
  const lines = createInterface({ input: stdin, output: stderr });
  try {
    const ended = new Promise<undefined>((resolve) => {
      lines.once('close', () => resolve(undefined));
    });
    return await Promise.race([lines.question(question), ended]);
  } finally {
    lines.close();
    // On a terminal the user's Enter has already moved to a new line, so a newline is written only
    // if the input is no terminal.
    if (stdin.isTTY !== true) stderr.write('\n');
  }
}

async function readSecret(question: string, { stdin, stderr }: Streams) {
  stderr.write(question);
  // readline writes what is typed to its output, so this output drops everything.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({
    input: stdin,
    output: nowhere,
    terminal: stdin.isTTY === true,
  });
  try {
    const ended = new Promise<undefined>((resolve) => {
      lines.once('close', () => resolve(undefined));
    });
    return await Promise.race([lines.question(''), ended]);
  } finally {
    lines.close();
    stderr.write('\n');
  }
}
