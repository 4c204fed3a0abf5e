import { CANCELED, sqlStateOf } from './faults.js';

/**
 * Returns the size of the next batch after a batch failed: a tenth if its statement exceeded its
 * time limit, because very many rows may depend on one row of the batch.
 *
 * @param most the size of the batch that failed
 * @throws the error itself if it is another one, or if the batch had one row
 */
export function smallerAfter(error: unknown, most: number): number {
  if (sqlStateOf(error) !== CANCELED || most === 1) throw error;
  return Math.ceil(most / 10);
}
