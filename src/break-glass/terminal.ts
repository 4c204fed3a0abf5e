import { createInterface } from 'node:readline/promises';

/** The streams of the command, which the tests of its parts replace. */
export interface OperatorTerminal {
  /** Writes a line of the result to standard output. */
  print(line: string): void;
  /** Writes a line for the person at the terminal to standard error. */
  say(line: string): void;
  /** Asks a question on standard error, and reads one line of standard input; undefined at its end. */
  ask(question: string): Promise<string | undefined>;
}

/** The streams of this process. */
export const processTerminal: OperatorTerminal = {
  print: (line) => void process.stdout.write(`${line}\n`),
  say: (line) => void process.stderr.write(`${line}\n`),
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
    if (!process.stdin.isTTY) process.stderr.write('\n'); // a terminal has echoed the end of the line
  }
}
