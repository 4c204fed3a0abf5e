/**
 * Counts the changes that turn one text into another. A change inserts, deletes or replaces a
 * letter, or swaps it with its neighbour (optimal string alignment).
 */
export function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number) => rows[i]?.[j] ?? Infinity;
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? at(i - 2, j - 2) + 1 : Infinity;
      row.push(Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, swapped));
    }
  }
  return at(a.length, b.length);
}

/** Returns the candidate with the smallest edit distance to a name, and the distance. */
export function nearestOf(name: string, candidates: readonly string[]) {
  const [first] = candidates
    .map((nearest) => ({ nearest, distance: editDistance(name, nearest) }))
    .toSorted((a, b) => a.distance - b.distance);
  return first ?? { nearest: '', distance: Infinity };
}
