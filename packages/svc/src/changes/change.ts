import { CliFailure } from '../program/failure.js';
import { difference } from './difference.js';
import type { SectionFormat } from './kept-lines.js';
import { BrokenMarkers, withBlock, withoutBlock, type MarkedBlock } from './marked-block.js';
import { fromBytes, readTextFile, toBytes, writeTextFile } from './text-file.js';

/**
 * One change of the user's machine. `svc setup` shows it first, and makes it if the user agrees.
 */
export interface Change {
  /** The lines that show the change to the user: a difference of a file, or a command. */
  readonly description: readonly string[];
  /** Makes the change. If it fails, the machine is in the same state as before. */
  apply(): void | Promise<void>;
}

/**
 * Returns the change that puts a block of lines into a text file; none if the file has the same
 * block already.
 */
export function blockChange(path: string, block: MarkedBlock): Change[] {
  return fileChange(path, (bytes, hasFolder) => {
    const lines = block.lines.map(toBytes);
    return { bytes: withBlock(bytes, { ...block, lines }, hasFolder) };
  });
}

/**
 * Returns the change that removes a block of lines from a text file; none if the file does not have
 * the block.
 *
 * @param sections the format of a block in which lines of the user may stand, which then stay
 */
export function blockRemoval(path: string, name: string, sections?: SectionFormat): Change[] {
  return fileChange(path, (bytes) => {
    if (bytes === undefined) return { bytes };
    const { text, madeFolder } = withoutBlock(bytes, name, sections);
    return { bytes: text, withFolder: madeFolder };
  });
}

/** Returns a change other than that of a text file, such as a command that is run. */
export function stepChange(description: string, apply: Change['apply']): Change {
  return { description: [description], apply };
}

function fileChange(
  path: string,
  edit: (
    bytes: string | undefined,
    hasFolder: boolean,
  ) => { bytes: string | undefined; withFolder?: boolean },
): Change[] {
  const file = readTextFile(path);
  const next = withMarkersOf(path, () => edit(file.bytes, file.hasFolder));
  if (next.bytes === file.bytes) return [];
  return [
    {
      description: difference(path, shown(file.bytes), shown(next.bytes)),
      apply: () => writeTextFile(file, next),
    },
  ];
}

function shown(bytes: string | undefined): string | undefined {
  return bytes === undefined ? undefined : fromBytes(bytes);
}

function withMarkersOf<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof BrokenMarkers)) throw error;
    throw new CliFailure(
      `${path}, ${error.message}. The file was left as it is.`,
      'Repair or remove the lines between "# >>> svc" and "# <<< svc" by hand, then run it again.',
    );
  }
}
