import { hash } from 'node:crypto';

/** The number of bytes in a hash (SHA-256). */
export const HASH_BYTES = 32;

const INNER = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

/** Returns the hash of a leaf: the SHA-256 of a zero byte and the entry (RFC 9162 §2.1.1). */
export function leafHash(entry: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(1 + entry.length);
  bytes[0] = 0;
  entry.copy(bytes, 1);
  return hash('sha256', bytes, 'buffer');
}

/** Returns the hash of a node of the tree from the hashes of its two children (RFC 9162 §2.1.1). */
export function innerHash(left: Buffer, right: Buffer): Buffer {
  left.copy(INNER, 1);
  right.copy(INNER, 1 + HASH_BYTES);
  return hash('sha256', INNER, 'buffer');
}

/**
 * A complete subtree of `2 ** level` leaves. `n` is its number from the left, from 0, among the
 * subtrees of the same size.
 */
export interface Subtree {
  readonly level: number;
  readonly n: number;
}

/** A complete subtree with its hash. */
export interface HashedSubtree extends Subtree {
  readonly hash: Buffer;
}

/**
 * The first leaves of a Merkle tree, kept as the hashes of its largest complete subtrees. There is
 * one hash for each bit that is set in the number of leaves, so that a million leaves need at most
 * 20.
 */
export class MerkleRange {
  readonly #hashes: Buffer[];

  /**
   * Continues a tree of `count` leaves; without arguments the tree is empty.
   *
   * @param bytes the hashes of the subtrees, the largest first, as {@link bytes} returned them
   */
  constructor(
    private count = 0,
    bytes: Buffer = Buffer.alloc(0),
  ) {
    const at = Array.from({ length: bytes.length / HASH_BYTES }, (_, i) => i * HASH_BYTES);
    this.#hashes = at.map((start) => bytes.subarray(start, start + HASH_BYTES));
  }

  /** The number of leaves that were appended so far. */
  get size(): number {
    return this.count;
  }

  /** The hashes of the subtrees, 32 bytes each, the largest subtree first. */
  get bytes(): Buffer {
    return Buffer.concat(this.#hashes);
  }

  /**
   * Appends a leaf by its hash.
   *
   * @param onNode is called for each subtree that the leaf completes
   */
  append(leaf: Buffer, onNode: (node: HashedSubtree) => void = () => {}): void {
    let hashed = leaf;
    let [level, n] = [0, this.count];
    for (; n % 2 === 1; n = (n - 1) / 2) {
      hashed = innerHash(this.#hashes.pop() ?? hashed, hashed);
      level += 1;
      onNode({ level, n: (n - 1) / 2, hash: hashed });
    }
    this.#hashes.push(hashed);
    this.count += 1;
  }

  /** Returns the root: the hash of the whole tree. */
  root(): Buffer {
    return rootOf(this.#hashes);
  }
}

/**
 * Returns the hash of a tree from the hashes of its largest complete subtrees, from left to right.
 */
export function rootOf(subtrees: readonly Buffer[]): Buffer {
  const [last, ...others] = subtrees.toReversed();
  if (last === undefined) return hash('sha256', '', 'buffer');
  return others.reduce((right, left) => innerHash(left, right), last);
}

/**
 * Divides a run of leaves into the largest complete subtrees, in their order. `from` is the index
 * of the first leaf, and `to` the index after the last one.
 */
export function subtreesOf(from: number, to: number): Subtree[] {
  const subtrees: Subtree[] = [];
  for (let at = from; at < to;) {
    let level = 0;
    while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= to) level += 1;
    subtrees.push({ level, n: at / 2 ** level });
    at += 2 ** level;
  }
  return subtrees;
}

/**
 * Returns the parts of a consistency proof, which shows that a tree is the beginning of a larger
 * one (RFC 9162 §2.1.4.1). Each part is a run of leaves, and its hash is one element of the proof.
 *
 * @param first the size of the smaller tree, at least 1
 * @param second the size of the larger tree
 */
export function consistencyParts(
  first: number,
  second: number,
): readonly { readonly from: number; readonly to: number }[] {
  return partsBelow(first, 0, second, true);
}

function partsBelow(
  first: number,
  from: number,
  to: number,
  isWhole: boolean,
): { readonly from: number; readonly to: number }[] {
  if (first === to) return isWhole ? [] : [{ from, to }];
  let half = 1;
  while (half * 2 < to - from) half *= 2;
  const middle = from + half;
  return first <= middle
    ? [...partsBelow(first, from, middle, isWhole), { from: middle, to }]
    : [...partsBelow(first, middle, to, false), { from, to: middle }];
}
