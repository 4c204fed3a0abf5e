/**
 * Counts the letters to insert, delete, replace or swap with their neighbour (optimal string
 * alignment).
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

/** Finds the candidate with the fewest letters to change. */
export function nearestOf(name: string, candidates: readonly string[]) {
  const [first] = candidates
    .map((nearest) => ({ nearest, distance: editDistance(name, nearest) }))
    .toSorted((a, b) => a.distance - b.distance);
  return first ?? { nearest: '', distance: Infinity };
}
