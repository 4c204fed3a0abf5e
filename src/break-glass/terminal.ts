import { createInterface } from 'node:readline/promises';

/** The streams of the command, which the tests of its parts replace. */
export interface OperatorTerminal {
  /** Writes a line of the result to standard output. */
  print(line: string): void;
  /** Writes a line for the person at the terminal to standard error. */
  say(line: string): void;
  /**
   * Asks a question on standard error, and reads one line of standard input; undefined at its end.
   */
  ask(question: string): Promise<string | undefined>;
}

/**
 * Characters that a terminal obeys or hides: controls, and formats such as a change of direction.
 */
const OBEYED = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/**
 * Escapes the characters of names and errors that a terminal would obey, as JSON escapes them: a
 * JSON document stays the same.
 */
export function visible(text: string): string {
  return text.replaceAll(OBEYED, (found) => (found === '\n' ? found : escaped(found)));
}

function escaped(text: string): string {
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/** The streams of this process. */
export const processTerminal: OperatorTerminal = {
  print: (line) => void process.stdout.write(`${visible(line)}\n`),
  say: (line) => void process.stderr.write(`${visible(line)}\n`),
  ask: readAnswer,
};

async function readAnswer(question: string): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const ended = new Promise<undefined>((resolve) => {
      lines.once('close', () => resolve(undefined));
    });
    return await Promise.race([lines.question(question), ended]);
  } finally {
    lines.close();
    // a terminal has echoed the end of the line
    if (!process.stdin.isTTY) process.stderr.write('\n');
  }
}
