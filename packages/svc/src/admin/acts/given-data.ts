import { readFileSync } from 'node:fs';
import { usageFailure } from '../../program/failure.js';
import { fileReason } from '../../program/system-errors.js';

/** The descriptor of standard input. */
const STDIN = 0;

/**
 * Reads the JSON of `--data`: the text itself, the file after `@`, or standard input for `@-`.
 * @throws CliFailure with status 2 for a file that cannot be read, or a text that is no JSON
 */
export function givenData(text: string, usage: string): unknown {
  const isFile = text.startsWith('@');
  const name = text === '@-' ? 'standard input' : isFile ? text.slice(1) : '--data';
  const content = isFile ? fileContent(text.slice(1), usage) : text;
  try {
    return JSON.parse(content);
  } catch {
    throw usageFailure(`${name} has no JSON.`, usage);
  }
}

function fileContent(file: string, usage: string): string {
  try {
    return readFileSync(file === '-' ? STDIN : file, 'utf8');
  } catch (error) {
    throw usageFailure(`${file} cannot be read: ${fileReason(error)}.`, usage);
  }
}
