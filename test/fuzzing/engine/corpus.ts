import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const MOST_BYTES = 40_000;

/**
 * Reads the stored inputs of a target: one input in base64 on each line.
 *
 * @returns no inputs if the target has no file yet
 */
export function readCorpus(target: string): Buffer[] {
  const file = fileOf(target);
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => Buffer.from(line, 'base64'));
}

/**
 * Stores inputs of a target, the shortest first. It leaves out the inputs that would make the file
 * larger than {@link MOST_BYTES}.
 */
export function writeCorpus(target: string, inputs: readonly Uint8Array[]): void {
  let size = 0;
  const lines = [...new Set(inputs.map((input) => Buffer.from(input).toString('base64')))]
    .filter((line) => line !== '')
    .toSorted((one, other) => one.length - other.length || (one < other ? -1 : 1))
    .filter((line) => (size += line.length + 1) <= MOST_BYTES);
  writeFileSync(fileOf(target), `${lines.join('\n')}\n`);
}

function fileOf(target: string): string {
  return `test/fuzzing/corpus/${target}.txt`;
}
