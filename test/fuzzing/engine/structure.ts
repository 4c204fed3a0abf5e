import type { SeededRandom } from './random.js';

/**
 * A part of an input. `head` has the bytes that say its type in the encoding, such as a tag.
 * `content` is either bytes or a list of smaller parts.
 */
export interface Part {
  head: Buffer;
  content: Buffer | Part[];
}

/**
 * An encoding that divides inputs into parts. `write` computes all lengths again, so that a changed
 * input passes the parser's checks of lengths and reaches the code after them.
 */
export interface Structure {
  /** Divides an input into parts. It accepts any bytes, because mutants need not be valid. */
  read(bytes: Buffer): Part[];
  write(parts: readonly Part[]): Buffer;
}

/** Returns a changed copy of the bytes of one part. */
export type MutateBytes = (bytes: Buffer) => Buffer;

const MOST_COPIES = 40;

/**
 * Changes a tree of parts at one random position. It removes, copies, replaces, swaps, nests or
 * changes a part there. It may insert a part of `donors`, which come from another input.
 */
export function mutateParts(
  parts: Part[],
  donors: readonly Part[],
  random: SeededRandom,
  mutateBytes: MutateBytes,
): void {
  const lists = listsIn(parts);
  const list = random.pick(lists);
  if (list.length === 0) {
    list.push(copyOf(donorFrom(donors, random) ?? emptyPart()));
    return;
  }
  const at = random.below(list.length);
  const part = list[at] ?? emptyPart();
  const donor = copyOf(donorFrom(donors, random) ?? part);
  const operations: readonly (() => void)[] = [
    () => list.splice(at, 1),
    () => list.splice(at, 0, copyOf(part)),
    () => list.splice(at, 1, donor),
    () => list.splice(at, 0, donor),
    () => swap(list, at, random.below(list.length)),
    () => list.splice(at, 0, ...copies(part, random)),
    () => nest(part, random),
    () => (part.head = mutateBytes(part.head)),
    () => mutateContent(part, mutateBytes),
    () => mutateContent(part, mutateBytes),
    () => mutateContent(part, mutateBytes),
  ];
  random.pick(operations)();
}

/** Returns a copy of a part and its inner parts. Only the bytes are shared with the original. */
export function copyOf({ head, content }: Part): Part {
  return { head, content: Buffer.isBuffer(content) ? content : content.map(copyOf) };
}

function mutateContent(part: Part, mutateBytes: MutateBytes): void {
  if (Buffer.isBuffer(part.content)) part.content = mutateBytes(part.content);
}

function copies(part: Part, random: SeededRandom): Part[] {
  return Array.from({ length: 1 + random.below(MOST_COPIES) }, () => copyOf(part));
}

/** Wraps the content of a part into up to 40 parts of the same type, if it consists of parts. */
function nest(part: Part, random: SeededRandom): void {
  for (let depth = random.below(MOST_COPIES); depth >= 0; depth -= 1) {
    if (Buffer.isBuffer(part.content)) return;
    part.content = [{ head: part.head, content: part.content }];
  }
}

function swap(list: Part[], one: number, other: number): void {
  const [first, second] = [list[one], list[other]];
  if (first && second) [list[one], list[other]] = [second, first];
}

function donorFrom(donors: readonly Part[], random: SeededRandom): Part | undefined {
  const list = random.pick(listsIn(donors));
  return list.length === 0 ? undefined : random.pick(list);
}

/** Returns every list of parts in a tree, the outermost one first. */
function listsIn(parts: readonly Part[]): Part[][] {
  const inner = parts.flatMap(({ content }) => (Buffer.isBuffer(content) ? [] : listsIn(content)));
  return [parts as Part[], ...inner];
}

function emptyPart(): Part {
  return { head: Buffer.alloc(0), content: Buffer.alloc(0) };
}
