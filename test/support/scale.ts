/**
 * The scale of the large tests. `npm test` runs them with few rows. `npm run test:scale` runs every
 * file that imports this module, with as many rows as production may have.
 */
export const SCALE: 'small' | 'full' = process.env['SCALE'] === 'full' ? 'full' : 'small';

/** Returns the count for the size of this run. */
export function atScale(counts: Readonly<Record<typeof SCALE, number>>): number {
  return counts[SCALE];
}
