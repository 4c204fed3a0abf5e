import { createHash, hash } from 'node:crypto';

/**
 * Returns the SHA-256 of bytes. Early versions of Node 20 lack `hash`, which is faster than
 * `createHash`.
 */
export function sha256(bytes: Buffer): Buffer {
  return typeof hash === 'function'
    ? hash('sha256', bytes, 'buffer')
    : createHash('sha256').update(bytes).digest();
}

const PREFIX_OF_LEAF = Buffer.of(0);
const PREFIX_OF_NODE = Buffer.of(1);

/** Returns the hash of a leaf (RFC 9162 §2.1.1). */
export function hashLeaf(entry: Buffer): Buffer {
  return sha256(Buffer.concat([PREFIX_OF_LEAF, entry]));
}

function hashNode(left: Buffer, right: Buffer): Buffer {
  return sha256(Buffer.concat([PREFIX_OF_NODE, left, right]));
}

/** A complete subtree of `width` leaves from the leaf `from` on. */
export interface CompleteSubtree {
  readonly from: number;
  readonly width: number;
  readonly hash: Buffer;
}

/**
 * A Merkle tree (RFC 9162) that grows leaf by leaf. It stores only its largest complete subtrees,
 * because their hashes are enough to compute the root.
 */
export class GrowingTree {
  readonly #parts: CompleteSubtree[];

  constructor(parts: readonly CompleteSubtree[] = []) {
    this.#parts = [...parts];
  }

  /**
   * Makes the tree of `size` leaves from the hashes of its complete subtrees, the largest first.
   * Returns undefined if their number does not fit the size.
   */
  static of(size: number, hashes: readonly Buffer[]): GrowingTree | undefined {
    const parts: CompleteSubtree[] = [];
    let from = 0;
    for (const part of hashes) {
      const width = largestPowerWithin(size - from);
      if (width === 0) return undefined;
      parts.push({ from, width, hash: part });
      from += width;
    }
    return from === size ? new GrowingTree(parts) : undefined;
  }

  get size(): number {
    const last = this.#parts.at(-1);
    return last ? last.from + last.width : 0;
  }

  /** The complete subtrees, the largest first. */
  get parts(): readonly CompleteSubtree[] {
    return this.#parts;
  }

  append(leaf: Buffer): void {
    let part: CompleteSubtree = { from: this.size, width: 1, hash: leaf };
    for (let left = this.#parts.at(-1); left?.width === part.width; left = this.#parts.at(-1)) {
      this.#parts.pop();
      part = { from: left.from, width: 2 * left.width, hash: hashNode(left.hash, part.hash) };
    }
    this.#parts.push(part);
  }

  root(): Buffer {
    const [last, ...others] = this.#parts.map((part) => part.hash).toReversed();
    return others.reduce((right, left) => hashNode(left, right), last ?? sha256(Buffer.alloc(0)));
  }

  copy(): GrowingTree {
    return new GrowingTree(this.#parts);
  }
}

function largestPowerWithin(size: number): number {
  return size < 1 ? 0 : 2 ** Math.floor(Math.log2(size));
}

/** The size and the root of a tree. */
export interface SizedRoot {
  readonly size: number;
  readonly root: Buffer;
}

/**
 * Returns true if a consistency proof shows that the smaller tree is the beginning of the larger
 * one (RFC 9162 §2.1.4.2).
 */
export function isExtension(
  first: SizedRoot,
  second: SizedRoot,
  proof: readonly Buffer[],
): boolean {
  if (first.size === second.size) return proof.length === 0 && first.root.equals(second.root);
  if (first.size < 1 || first.size > second.size) return false;
  const isPower = largestPowerWithin(first.size) === first.size;
  const [start, ...path] = isPower ? [first.root, ...proof] : proof;
  if (start === undefined) return false;
  let place: TwoPlaces = { first: first.size - 1, second: second.size - 1 };
  while (place.first % 2 === 1) place = above(place);
  let [older, newer] = [start, start];
  for (const part of path) {
    if (place.second === 0) return false;
    if (place.first % 2 === 1 || place.first === place.second) {
      [older, newer] = [hashNode(part, older), hashNode(part, newer)];
      while (place.first % 2 === 0 && place.first !== 0) place = above(place);
    } else {
      newer = hashNode(newer, part);
    }
    place = above(place);
  }
  return place.second === 0 && older.equals(first.root) && newer.equals(second.root);
}

/**
 * The positions, on one level, of two nodes of the larger tree: `first` is above the last leaf of
 * the smaller tree, and `second` above its own last leaf (`fn` and `sn` in RFC 9162 §2.1.4.2).
 */
interface TwoPlaces {
  readonly first: number;
  readonly second: number;
}

function above({ first, second }: TwoPlaces): TwoPlaces {
  return { first: Math.floor(first / 2), second: Math.floor(second / 2) };
}
