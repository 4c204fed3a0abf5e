import { accessSync, constants } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { Change } from '../changes/change.js';
import { difference } from '../changes/difference.js';
import { fromBytes, readTextFile, toBytes, writeTextFile } from '../changes/text-file.js';
import { variable } from '../program/environment.js';
import { CliFailure } from '../program/failure.js';
import { HELPER } from './docker-note.js';

/** The line by which `svc setup docker` recognizes a script that it wrote. */
const MARK = '# Written by svc setup docker; svc setup docker --remove removes it.';

/** The mode of the script: every account may run it, because it has no secret. */
const MODE = 0o755;

/**
 * Returns the path of the script that Docker runs: beside `svc`, or in `~/.local/bin` if the user
 * cannot write there.
 */
export function scriptPath(program: string, home: string): string {
  const folder = dirname(program);
  return join(
    isWritable(folder) ? folder : join(home, '.local/bin'),
    `docker-credential-${HELPER}`,
  );
}

/**
 * Returns true if the folder of a path is in the variable PATH, in which a shell finds programs.
 */
export function isOnPath(path: string): boolean {
  return (variable('PATH') ?? '').split(delimiter).includes(dirname(path));
}

/**
 * Returns the change that writes the script; none if it is in place.
 * @throws CliFailure if another program has the name
 */
export function scriptChange(path: string, program: string): Change[] {
  const file = readTextFile(path);
  const before = file.bytes === undefined ? undefined : fromBytes(file.bytes);
  const after = `#!/bin/sh\n${MARK}\nexec ${word(program)} docker credential "$@"\n`;
  if (before === after) return [];
  if (before !== undefined && !before.includes(MARK)) {
    const message = `${path} is there already, and not of svc.`;
    throw new CliFailure(message, 'Remove it, or use that helper.');
  }
  return [
    {
      description: difference(path, before, after),
      apply: () => writeTextFile({ ...file, mode: MODE }, { bytes: toBytes(after) }),
    },
  ];
}

/**
 * Returns the change that removes the script; an empty list if there is no script, or if another
 * program wrote it.
 */
export function scriptRemoval(path: string | undefined): Change[] {
  if (path === undefined) return [];
  const file = readTextFile(path);
  if (file.bytes === undefined || !file.bytes.includes(MARK)) return [];
  return [
    {
      description: difference(path, fromBytes(file.bytes), undefined),
      apply: () => writeTextFile(file, { bytes: undefined }),
    },
  ];
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Quotes a text as one word for the shell. */
function word(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
