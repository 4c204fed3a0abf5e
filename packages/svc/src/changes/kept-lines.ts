/**
 * The format of a block that consists of sections: lines `[name]`, each followed by lines `key =
 * value`. Programs such as `git config` add lines of the user to a section of the block.
 */
export interface SectionFormat {
  /** The keys that the command writes, in lower case. A line with any other key is the user's. */
  readonly keys: readonly string[];
  /**
   * True if a line of the user also makes sense without the lines of the command. Then the line
   * stays when its section leaves the block.
   */
  readonly outlivesBlock: boolean;
}

/** The lines of the user in sections of a block, by the line with the name of the section. */
export type KeptLines = ReadonlyMap<string, readonly string[]>;

const HEADER = /^\s*\[.*\]\s*$/;
const KEY = /^\s*([\w-]+)\s*(?:=|$)/;

/**
 * Finds the lines of the user in the lines of a block. After a line of the user that ends with a
 * backslash, the next line is also the user's.
 */
export function keptLines(lines: readonly string[], format: SectionFormat): KeptLines {
  const kept = new Map<string, string[]>();
  let header = '';
  let continues = false;
  for (const line of lines) {
    if (!continues && HEADER.test(line)) header = line.trim();
    else if (continues || isOfUser(line, format)) {
      kept.set(header, [...(kept.get(header) ?? []), line]);
      continues = line.endsWith('\\');
    }
  }
  return kept;
}

function isOfUser(line: string, { keys }: SectionFormat): boolean {
  return line.trim() !== '' && !keys.includes(keyOf(line) ?? '');
}

function keyOf(line: string): string | undefined {
  return KEY.exec(line)?.[1]?.toLowerCase();
}

/**
 * Returns the position at which the last section of a block ends. Lines after the block still
 * belong to that section until another section begins, and `aws configure set` writes there. The
 * result is the end of the block if there are no such lines.
 */
export function endOfLastSection(text: string, end: number): number {
  let last = end;
  let at = end;
  for (const line of text.slice(end).split('\n')) {
    if (HEADER.test(line)) break;
    at = Math.min(at + line.length + 1, text.length);
    if (line.trim() !== '' && !/^\s*[#;]/.test(line)) last = at;
  }
  return last;
}

/**
 * Adds the lines of the user to the new lines of a block, each after the lines of its section. A
 * line whose key the section has now is left out, because a second one could break the file.
 */
export function withKeptLines(lines: readonly string[], kept: KeptLines): string[] {
  const starts = lines.flatMap((line, index) => (HEADER.test(line) ? [index] : []));
  const isLast = (header: string, start: number) =>
    starts.every((other) => other <= start || lines[other]?.trim() !== header);
  return starts.flatMap((start, n) => {
    const section = lines.slice(start, starts[n + 1]);
    const header = section[0]?.trim() ?? '';
    const keys = new Set(section.slice(1).map(keyOf));
    const own = isLast(header, start) ? (kept.get(header) ?? []) : [];
    return [...section, ...own.filter((line) => !keys.has(keyOf(line) ?? ''))];
  });
}

/**
 * Returns the lines of the user from sections that the new lines of a block do not have any more.
 * The result is a text to put after the block, with the line that names each section.
 */
export function leftSections(lines: readonly string[], kept: KeptLines): string {
  const names = new Set(lines.map((line) => line.trim()));
  const left = [...kept].filter(([header]) => !names.has(header));
  return left.flatMap(([header, own]) => [header, ...own].map((line) => `${line}\n`)).join('');
}
