import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CommandContext } from '../command/command-context.js';
import { CliFailure } from '../program/failure.js';
import type { Change } from './change.js';
import { noteChange, setupNote } from './setup-note.js';
import type { SetupPlan } from './setup-part.js';

/**
 * The file of a tool into which `svc setup` writes. An environment variable of the tool can name
 * another file.
 */
export interface ToolFile {
  /** The name of the part of `svc setup`. */
  readonly part: string;
  /** The file that the tool reads now: that of the variable, or else the usual file. */
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
 * finds it. By then, the variable of the tool may have another value. The usual file is always
 * looked at, so it is not recorded.
 */
export function fileNoteChange(context: CommandContext, file: ToolFile): Change[] {
  const { part, present, usual } = file;
  const before = notedFiles(context, part);
  const after = [...new Set([...before, ...(present === usual ? [] : [present])])];
  return noteChange(context, noteName(part), after.length === 0 ? undefined : after);
}

/**
 * Returns the changes that undo a setup in every file of a tool into which it wrote. `notes` names
 * each changed file other than the present one, and each file that cannot be read. If such a file
 * is recorded, it stays in the record for the next removal.
 *
 * @param undo returns the changes of one file; none if the setup did not write into it
 * @throws CliFailure if the present file cannot be read
 */
export function fileRemovals(
  context: CommandContext,
  { part, present, usual, variable }: ToolFile,
  undo: (path: string) => readonly Change[],
): SetupPlan {
  const noted = notedFiles(context, part);
  // Two paths can lead to one file by a symbolic link, and each file is changed once.
  const paths = new Map(
    [present, usual, ...noted].toReversed().map((path) => [realPath(path), path]),
  );
  const removals: readonly FileRemoval[] = [...paths.values()].map((path) =>
    path === present ? { path, changes: undo(path) } : { path, ...attempt(() => undo(path)) },
  );
  const unread = removals.filter(({ problem }) => problem !== undefined);
  const unreadFiles = new Set(unread.map(({ path }) => realPath(path)));
  const kept = noted.filter((path) => unreadFiles.has(realPath(path)));
  return {
    changes: [
      ...removals.flatMap(({ changes }) => changes),
      ...noteChange(context, noteName(part), kept.length === 0 ? undefined : kept),
    ],
    notes: [
      ...removals
        .filter(({ path, changes }) => path !== present && changes.length > 0)
        .map(
          ({ path }) =>
            `${part}: the setup also wrote ${path}, which is not the file of ${variable} now`,
        ),
      ...unread.map(({ path, problem }) => `${part}: ${path} could not be looked at: ${problem}`),
    ],
  };
}

/** The changes that undo a setup in one file, or else the problem by which it cannot be read. */
interface FileRemoval {
  readonly path: string;
  readonly changes: readonly Change[];
  readonly problem?: string;
}

function attempt(undo: () => readonly Change[]): Omit<FileRemoval, 'path'> {
  try {
    return { changes: undo() };
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    return { changes: [], problem: error.message };
  }
}

/**
 * Returns the path of a file after all symbolic links were followed; the path itself if they cannot
 * be followed.
 */
export function realPath(path: string): string {
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
