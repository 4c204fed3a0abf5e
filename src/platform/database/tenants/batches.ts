import { PATIENCE_DURING_RESPONSE } from './tenant-work.js';

/**
 * A part of a list. `next` is the position after which the next part begins; undefined at the end
 * of the list.
 */
export interface PartOfList<Row, Place> {
  readonly rows: readonly Row[];
  readonly next: Place | undefined;
}

/**
 * Makes a part of a list from the rows that a statement found. The statement must request one row
 * more than `limit`: if it finds that row too, the list goes on after this part.
 */
export function partOf<Row, Place>(
  found: readonly Row[],
  limit: number,
  placeOf: (row: Row) => Place,
): PartOfList<Row, Place> {
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  return { rows, next: found.length > limit && last ? placeOf(last) : undefined };
}

/**
 * The range of a list that is to be read: at most `limit` rows, which follow the position `after`.
 */
export interface RangeOfList<Place> {
  readonly after: Place | undefined;
  readonly limit: number;
}

/** The largest number of rows that one statement reads for an export. */
const BATCH = 500;

/** Reads a part of a list, and waits at most `patience` milliseconds for a connection, if set. */
type ReadPart<Row, Place> = (
  range: RangeOfList<Place>,
  patience?: number,
) => Promise<PartOfList<Row, Place>>;

/**
 * Reads a list in batches. A batch is read after the client has taken the previous batch, so that
 * at most one batch is in memory.
 *
 * @param range the position at which the list begins, and the largest number of rows; by default
 *   all rows
 * @returns the batches; the first one is read before the function returns, so that an error can
 *   still become the status code of the response
 */
export async function inBatches<Row, Place>(
  {
    after,
    limit = Number.POSITIVE_INFINITY,
  }: { readonly after?: Place | undefined; readonly limit?: number | undefined },
  read: ReadPart<Row, Place>,
): Promise<AsyncGenerator<readonly Row[]>> {
  const first = await read({ after, limit: Math.min(BATCH, limit) });
  return batchesFrom(first, limit, read);
}

async function* batchesFrom<Row, Place>(
  first: PartOfList<Row, Place>,
  limit: number,
  read: ReadPart<Row, Place>,
): AsyncGenerator<readonly Row[]> {
  let left = limit;
  for (let batch = first; ;) {
    const { rows, next: after } = batch;
    if (rows.length > 0) yield rows;
    left -= rows.length;
    if (after === undefined || left <= 0) return;
    batch = await read({ after, limit: Math.min(BATCH, left) }, PATIENCE_DURING_RESPONSE);
  }
}
