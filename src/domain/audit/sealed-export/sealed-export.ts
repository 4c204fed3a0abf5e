import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { listCheckpoints, listRanges } from '../seal/checkpoints.repository.js';
import { CHECKPOINT_KIND, readEntry } from '../seal/leaf-entry.js';
import {
  findBatch,
  findTree,
  rangeAt,
  type LeafBatch,
  type SignedTreeState,
} from './leaves.repository.js';
import type { MerkleRange } from '../seal/merkle-tree.js';
import { findElsewhere, listHiddenTexts, listRowTexts } from '../seal/sealed-rows.repository.js';

/**
 * A position in the Merkle trees of an organization. `epoch` is the number of an epoch (the time
 * between two losses of commits of the database) as a decimal text; each epoch has a tree of its
 * own. `index` is the index of the next leaf in this tree, counted from 0.
 */
export interface SealedPlace {
  readonly epoch: string;
  readonly index: number;
}

/**
 * The facts that an export states: its time (RFC 3339), and the days for which events of a class
 * are kept, which explain missing events.
 */
export interface ExportFacts {
  readonly at: string;
  readonly retention: Readonly<Record<'auth' | 'oauth', number>>;
}

/**
 * A part of the sealed export: lines of JSON, and the position from which the next part goes on.
 */
export interface SealedPart {
  readonly lines: readonly string[];
  /** Undefined after the last tree. */
  readonly next: SealedPlace | undefined;
}

/**
 * The most events without a leaf that are read with each part, so that the export also shows events
 * that were inserted without a seal.
 */
const MOST_INSERTED = 10_000;

/**
 * Reads a part of the sealed export from a position on. The export lists the leaves of the Merkle
 * trees with their events, so that a verifier can find changed events.
 *
 * The first line of a tree states the tree, and each further line one leaf: the entry, and the text
 * of the event. If the event is gone, the line has the entry alone. A line whose index is null is
 * an event that was not sealed, so that no leaf is about it.
 *
 * After the last leaf of a checkpoint, a line has the hashes of the largest complete subtrees. From
 * these a verifier can go on if the leaves before are wrong.
 *
 * @param isBegun true if an earlier part was read, so that the line of the tree was in it
 */
export async function readSealed(
  tx: EntityManager,
  id: string,
  place: SealedPlace,
  isBegun: boolean,
  facts: ExportFacts,
): Promise<SealedPart> {
  const tree = await findTree(tx, id, place.epoch);
  if (!tree) return { lines: isBegun ? await hiddenLines(tx, id, 'last') : [], next: undefined };
  const index = tree.epoch === place.epoch ? place.index : 0;
  const batch = index < tree.size ? await findBatch(tx, tree, index) : undefined;
  if (!batch) return { lines: [], next: { epoch: String(BigInt(tree.epoch) + 1n), index: 0 } };
  const isFirst = !isBegun || index === 0;
  const lines = isFirst ? [await treeLine(tx, tree, index, facts)] : [];
  if (!isBegun && index === 0) lines.push(...(await hiddenLines(tx, id, 'first')));
  const end = Math.min(tree.size, batch.first + batch.entries.length);
  const ranges = await listRanges(tx, id, tree.epoch, [index + 1, end]);
  const leaves = await leafLines(tx, tree, batch, { from: index, to: end });
  const bySize = new Map(ranges.map((range) => [range.size, range]));
  for (const { after, line } of leaves) {
    lines.push(line);
    const range = after === undefined ? undefined : bySize.get(after);
    if (range) lines.push(rangeLine(range));
  }
  return { lines, next: { epoch: tree.epoch, index: end } };
}

async function treeLine(
  tx: EntityManager,
  { tree, epoch, size }: SignedTreeState,
  from: number,
  facts: ExportFacts,
): Promise<string> {
  const range = hashesOf(await rangeAt(tx, tree, epoch, from));
  return JSON.stringify({ tree, epoch, size, from, range, ...facts });
}

/**
 * Renders the events before the first position of the feed, or after its last epoch, as lines of
 * events that were not sealed. The service writes no event with such a position, so another program
 * inserted each of them.
 */
async function hiddenLines(
  tx: EntityManager,
  tree: string,
  place: 'first' | 'last',
): Promise<string[]> {
  const rows = await listHiddenTexts(tx, tree, place, MOST_INSERTED);
  return rows.map(({ text }) => unsealedLine(text));
}

const unsealedLine = (text: string) => `{"index":null,"row":${text}}`;

function rangeLine(range: MerkleRange): string {
  return JSON.stringify({ size: range.size, range: hashesOf(range) });
}

function hashesOf({ bytes }: MerkleRange): string[] {
  const hashes = Array.from({ length: bytes.length / 32 }, (_, n) =>
    bytes.subarray(n * 32, n * 32 + 32),
  );
  return hashes.map((hash) => hash.toString('base64'));
}

/**
 * A line of the export. `after` is the number of leaves up to this one, undefined for a line
 * without a leaf.
 */
interface LeafLine {
  readonly line: string;
  readonly after: number | undefined;
}

/** Renders a batch of leaves as lines, with the events between them that were not sealed. */
async function leafLines(
  tx: EntityManager,
  tree: SignedTreeState,
  { first, entries, after, last }: LeafBatch,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<LeafLine[]> {
  const rows = await listRowTexts(tx, tree.tree, after, last, entries.length + MOST_INSERTED);
  const leaves = entries.map((bytes, n) => ({ bytes, index: first + n, ...readEntry(bytes) }));
  const texts = new Map(rows.map(({ id, text }) => [id, text]));
  const ids = new Set(leaves.map(({ id }) => id));
  const gone = leaves.filter(({ kind, id }) => kind !== CHECKPOINT_KIND && !texts.has(id));
  const elsewhere = await findElsewhere(
    tx,
    gone.map(({ id }) => id),
  );
  // The line of an event that was not sealed comes before the line of the next sealed event in the
  // order of the feed.
  const inserted = new Map<string | undefined, string[]>();
  const waiting: string[] = [];
  for (const { id, text } of rows) {
    if (!ids.has(id)) waiting.push(unsealedLine(text));
    else if (waiting.length > 0) inserted.set(id, waiting.splice(0));
  }
  const lines: LeafLine[] = [];
  for (const { bytes, index, kind, id, number } of leaves) {
    if (index < from || index >= to) continue;
    for (const line of inserted.get(id) ?? []) lines.push({ line, after: undefined });
    const entry = bytes.toString('base64');
    const text = texts.get(id);
    const rest =
      kind === CHECKPOINT_KIND
        ? `,"checkpoint":${JSON.stringify(await noteOf(tx, tree, index, { id, size: Number(number) }))}`
        : text === undefined
          ? elsewhere.has(id)
            ? ',"moved":true'
            : ''
          : `,"row":${text}`;
    lines.push({ line: `{"index":${index},"entry":"${entry}"${rest}}`, after: index + 1 });
  }
  return [...lines, ...waiting.map((line) => ({ line, after: undefined }))];
}

/**
 * Returns the signed text of a checkpoint that is a leaf; null if the database does not have it any
 * more.
 */
async function noteOf(
  tx: EntityManager,
  { epoch, previous }: SignedTreeState,
  index: number,
  { id, size }: { readonly id: string; readonly size: number },
): Promise<string | null> {
  if (index === 0 && previous !== null) return previous;
  const [checkpoint] = await listCheckpoints(tx, id, { epoch, size: size - 1 }, 1);
  return checkpoint?.epoch === epoch && checkpoint.size === size ? checkpoint.note : null;
}
