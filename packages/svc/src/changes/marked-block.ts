import {
  endOfLastSection,
  keptLines,
  leftSections,
  withKeptLines,
  type KeptLines,
  type SectionFormat,
} from './kept-lines.js';

/**
 * A block of lines that `svc setup` writes into a text file of the user, between two marker lines.
 */
export interface MarkedBlock {
  /** The name in the marker lines, such as `ssh`. A file has at most one block of each name. */
  readonly name: string;
  readonly lines: readonly string[];
  /** The place of a new block in the file. A block that exists is not moved. */
  readonly position: 'top' | 'bottom';
  /** The format of a block in whose sections other programs write lines of the user. */
  readonly sections?: SectionFormat;
}

/**
 * The error for a text whose marker lines do not form pairs, with the number of the wrong line.
 * Such a text is not changed.
 */
export class BrokenMarkers extends Error {
  constructor(
    readonly line: number,
    problem: string,
  ) {
    super(`line ${line}: ${problem}`);
  }
}

/**
 * The addition that was made together with a block: a new file, a new folder with the file, or a
 * line break before the block. The first marker line records it, so that the removal of the block
 * restores every byte.
 */
type Origin = 'new file' | 'new folder' | 'new line' | undefined;

interface FoundBlock {
  readonly name: string;
  readonly origin: Origin;
  readonly start: number;
  readonly end: number;
}

const OPENING = /^# >>> svc ([a-z0-9-]+)(?: \((new file|new folder|new line)\))? >>>[ \t\r]*$/;
const CLOSING = /^# <<< svc ([a-z0-9-]+) <<<[ \t\r]*$/;
const ANY_MARKER = /^\s*#\s*(?:>>>|<<<)\s*svc\b/;

/**
 * Adds a block to a text, or replaces the block of the same name in its place.
 *
 * @param text undefined if the file does not exist
 * @param hasFolder true if the folder of a missing file exists
 * @throws BrokenMarkers if the marker lines of the text do not form pairs
 */
export function withBlock(text: string | undefined, block: MarkedBlock, hasFolder = true): string {
  const found = blocksOf(text ?? '').find(({ name }) => name === block.name);
  if (text !== undefined && found) {
    const { kept, end } = linesOfUser(text, found, block.sections);
    const lines = block.sections ? withKeptLines(block.lines, kept) : block.lines;
    const left = block.sections?.outlivesBlock === true ? leftSections(lines, kept) : '';
    const [before, after] = [text.slice(0, found.start), text.slice(end)];
    return before + render({ ...block, lines }, found.origin) + left + after;
  }
  if (text === undefined) return render(block, hasFolder ? 'new file' : 'new folder');
  if (block.position === 'top') return render(block, undefined) + text;
  const isOpen = text !== '' && !text.endsWith('\n');
  return isOpen ? `${text}\n${render(block, 'new line')}` : text + render(block, undefined);
}

/** A text after a block was removed from it. */
export interface Remainder {
  /** The text; undefined if the file was made for the block, and nothing else is left in it. */
  readonly text: string | undefined;
  /** True if the folder of the file was also made for the block. */
  readonly madeFolder: boolean;
}

/**
 * Removes the block of a name, and restores the text as it was before the block was added. Lines
 * that the user added to a section of the block stay only if `sections` says that they outlive it.
 * @throws BrokenMarkers if the marker lines do not form pairs
 */
export function withoutBlock(text: string, name: string, sections?: SectionFormat): Remainder {
  const found = blocksOf(text).find((block) => block.name === name);
  if (!found) return { text, madeFolder: false };
  const { origin } = found;
  const { kept, end } = linesOfUser(text, found, sections);
  const left = sections?.outlivesBlock === true ? leftSections([], kept) : '';
  const after = left + text.slice(end);
  const addedBreak = origin === 'new line' && after === '' && text[found.start - 1] === '\n';
  const rest = text.slice(0, addedBreak ? found.start - 1 : found.start) + after;
  const madeFile = origin === 'new file' || origin === 'new folder';
  return {
    text: madeFile && rest === '' ? undefined : rest,
    madeFolder: origin === 'new folder',
  };
}

/**
 * Returns true if a text has a block of this name.
 *
 * @throws BrokenMarkers like {@link withBlock}
 */
export function hasBlock(text: string, name: string): boolean {
  return blocksOf(text).some((block) => block.name === name);
}

function render({ name, lines }: MarkedBlock, origin: Origin): string {
  const opening = `# >>> svc ${name}${origin ? ` (${origin})` : ''} >>>`;
  return [opening, ...lines, `# <<< svc ${name} <<<`].map((line) => `${line}\n`).join('');
}

/**
 * Finds the lines of the user in the sections of a block. `end` is the end of the last of these
 * lines, which may stand after the block.
 */
function linesOfUser(
  text: string,
  found: FoundBlock,
  sections: SectionFormat | undefined,
): { readonly kept: KeptLines; readonly end: number } {
  if (!sections) return { kept: new Map(), end: found.end };
  const end = endOfLastSection(text, found.end);
  const lines = text.slice(found.start, end).split('\n');
  return { kept: keptLines(lines.filter(isNoMarker), sections), end };
}

const isNoMarker = (line: string) => !ANY_MARKER.test(line);

/**
 * Finds every block of a text.
 *
 * @throws BrokenMarkers if the marker lines do not form pairs
 */
function blocksOf(text: string): FoundBlock[] {
  const found: FoundBlock[] = [];
  let open: (Omit<FoundBlock, 'end'> & { line: number }) | undefined;
  let start = 0;
  let line = 0;
  for (const content of text.split('\n')) {
    line += 1;
    const end = Math.min(start + content.length + 1, text.length);
    const [opening, closing] = [OPENING.exec(content), CLOSING.exec(content)];
    if (opening) {
      const name = opening[1] ?? '';
      if (open) throw unclosed(open);
      if (found.some((other) => other.name === name)) {
        throw new BrokenMarkers(line, `a second block "svc ${name}" begins`);
      }
      open = { name, origin: opening[2] as Origin, start, line };
    } else if (closing) {
      if (!open || open.name !== closing[1]) {
        throw new BrokenMarkers(line, `a block "svc ${closing[1]}" ends that did not begin`);
      }
      found.push({ name: open.name, origin: open.origin, start: open.start, end });
      open = undefined;
    } else if (ANY_MARKER.test(content)) {
      throw new BrokenMarkers(line, 'a marker of svc was changed');
    }
    start = end;
  }
  if (open) throw unclosed(open);
  return found;
}

function unclosed({ name, line }: { name: string; line: number }): BrokenMarkers {
  return new BrokenMarkers(line, `the block "svc ${name}" begins and does not end`);
}
