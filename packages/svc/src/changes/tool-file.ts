import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CommandContext } from '../command/command-context.js';
import type { Change } from './change.js';
import { noteChange, setupNote } from './setup-note.js';
import type { SetupPlan } from './setup-part.js';

/** The file of a tool into which `svc setup` writes. A variable of the tool can name another. */
export interface ToolFile {
  /** The name of the part of `svc setup`. */
  readonly part: string;
  /** The file that the tool reads now. */
  readonly present: string;
  /** The file that the tool reads if the variable is not set. */
  readonly usual: string;
  readonly variable: string;
}

/** Makes a {@link ToolFile} from the path in the variable of the tool, if it is set. */
export function toolFile(
  part: string,
  variable: string,
  { named, usual }: { readonly named: string | undefined; readonly usual: string },
): ToolFile {
  return { part, variable, usual, present: named === undefined ? usual : resolve(named) };
}

/**
 * Returns the change that records the file of a tool in `config.json`, so that a later removal
 * finds it although the variable may have another value by then. The usual file is always looked
 * at, so it is not recorded.
 */
export function fileNoteChange(context: CommandContext, file: ToolFile): Change[] {
  const { part, present, usual } = file;
  const before = notedFiles(context, part);
  const after = [...new Set([...before, ...(present === usual ? [] : [present])])];
  return noteChange(context, noteName(part), after.length === 0 ? undefined : after);
}

/**
 * Returns the changes that undo a setup in every file of a tool into which it wrote, and a line
 * about each file that is not the present one.
 *
 * @param undo returns the changes of one file; none if the setup did not write into it
 */
export function fileRemovals(
  context: CommandContext,
  { part, present, usual, variable }: ToolFile,
  undo: (path: string) => readonly Change[],
): SetupPlan {
  // Two paths can lead to one file by a symbolic link, and each file is changed once.
  const paths = new Map(
    [present, usual, ...notedFiles(context, part)]
      .toReversed()
      .map((path) => [realPath(path), path]),
  );
  const removals = [...paths.values()].map((path) => ({ path, changes: undo(path) }));
  const notes = removals
    .filter(({ path, changes }) => path !== present && changes.length > 0)
    .map(
      ({ path }) =>
        `${part}: the setup also wrote ${path}, which is not the file of ${variable} now`,
    );
  return {
    changes: [
      ...removals.flatMap(({ changes }) => changes),
      ...noteChange(context, noteName(part), undefined),
    ],
    notes,
  };
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

const noteName = (part: string) => `${part}-files`;

function notedFiles(context: CommandContext, part: string): string[] {
  const note = setupNote(context, noteName(part));
  return Array.isArray(note) ? note.filter((path) => typeof path === 'string') : [];
}
