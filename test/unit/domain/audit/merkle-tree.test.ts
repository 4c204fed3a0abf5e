import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  consistencyParts,
  innerHash,
  leafHash,
  MerkleRange,
  subtreesOf,
} from '#domain/audit/seal/merkle-tree.js';
import {
  GrowingTree,
  hashLeaf,
  isExtension,
} from '../../../../packages/svc/src/audit/tree-hash.js';

const leaves = Array.from({ length: 70 }, (_, n) => leafHash(Buffer.from(`leaf ${n}`)));

/** Returns the hash of a tree, as RFC 9162 §2.1.1 defines it. */
function mth(of: readonly Buffer[]): Buffer {
  const [only] = of;
  if (!only) return createHash('sha256').digest();
  if (of.length === 1) return only;
  let half = 1;
  while (half * 2 < of.length) half *= 2;
  return innerHash(mth(of.slice(0, half)), mth(of.slice(half)));
}

function rangeOf(size: number): MerkleRange {
  const range = new MerkleRange();
  for (const leaf of leaves.slice(0, size)) range.append(leaf);
  return range;
}

describe('the tree of the seal', () => {
  it('has the roots of RFC 9162, on the server and in the command', () => {
    // These roots are in the test vectors of the reference implementation of RFC 6962.
    expect(leafHash(Buffer.alloc(0)).toString('hex')).toBe(
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    );
    expect(new MerkleRange().root().toString('hex')).toBe(
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    );
    const tree = new GrowingTree();
    for (let size = 1; size <= leaves.length; size += 1) {
      tree.append(hashLeaf(Buffer.from(`leaf ${size - 1}`)));
      const root = mth(leaves.slice(0, size));
      expect([rangeOf(size).root(), tree.root()]).toEqual([root, root]);
      const again = new MerkleRange(size, rangeOf(size).bytes);
      expect([again.size, again.root()]).toEqual([size, root]);
      const hashes = tree.parts.map(({ hash }) => hash);
      expect(GrowingTree.of(size, hashes)?.root()).toEqual(root);
      expect(GrowingTree.of(size, [...hashes, root])).toBeUndefined();
    }
  });

  it('names each subtree that a leaf completes', () => {
    const range = new MerkleRange();
    const nodes = new Map<string, string>();
    for (const leaf of leaves) {
      range.append(leaf, ({ level, n, hash }) => nodes.set(`${level} ${n}`, hash.toString('hex')));
    }
    for (const [place, hash] of nodes) {
      const [level = 0, n = 0] = place.split(' ').map(Number);
      const width = 2 ** level;
      expect(mth(leaves.slice(n * width, (n + 1) * width)).toString('hex')).toBe(hash);
    }
    expect(nodes.size).toBe(35 + 17 + 8 + 4 + 2 + 1);
    expect(subtreesOf(3, 9)).toEqual([
      { level: 0, n: 3 },
      { level: 2, n: 1 },
      { level: 0, n: 8 },
    ]);
  });

  it('proves that it extends each smaller tree, and no other one', () => {
    for (let second = 1; second <= leaves.length; second += 1) {
      const newer = { size: second, root: mth(leaves.slice(0, second)) };
      for (let first = 1; first <= second; first += 1) {
        const older = { size: first, root: mth(leaves.slice(0, first)) };
        const parts = consistencyParts(first, second);
        const proof = parts.map(({ from, to }) => mth(leaves.slice(from, to)));
        expect(isExtension(older, newer, proof)).toBe(true);
        const other = { size: first, root: leafHash(Buffer.from('another tree')) };
        expect(isExtension(other, newer, proof)).toBe(false);
        expect(isExtension(older, { ...newer, root: other.root }, proof)).toBe(false);
        expect(isExtension(older, newer, [...proof, other.root])).toBe(false);
      }
    }
  });
});
