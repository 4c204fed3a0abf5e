import type { Clock } from '#platform/clock/clock.js';
import { PATIENCE_DURING_RESPONSE } from '#platform/database/tenants/tenant-work.js';
import type { FeedPlace, FeedRow } from './audit-feed.repository.js';
import { writeFeedCursor } from './feed-cursor.js';

/**
 * The number of events that one statement reads of the feed, which serves programs that copy the
 * log.
 */
const BATCH = 1_000;

/**
 * The milliseconds after which a response of the feed reads no further batch. It is below the
 * deadline of a request, so that the response ends after a whole line and is not cut off: a program
 * that throws a broken response away would begin at the same event for ever.
 */
export const READ_TIME = 20_000;

/**
 * Reads the events of the feed after a position, and waits at most `patience` milliseconds for a
 * connection, if set.
 */
type ReadFeed = (after: FeedPlace, limit: number, patience?: number) => Promise<readonly FeedRow[]>;

/** The part of the feed that a response with one event on each line has. */
export interface FeedLinesQuery {
  readonly start: FeedPlace;
  /** The most events to read, wanted or not. */
  readonly limit: number;
  /** The types of the events to return; undefined for all. */
  readonly types: readonly string[] | undefined;
}

/** The events for the lines of a response, in batches that are read one after another. */
export interface FeedLines {
  readonly batches: AsyncIterable<readonly FeedRow[]>;
  /**
   * The cursor after which the reader goes on, if `batches` has no event. Otherwise it is
   * undefined, because the last line has the cursor.
   */
  readonly next: string | undefined;
}

/** Returns the events that have one of the types; all of them if `types` is undefined. */
export function ofTypes(
  events: readonly FeedRow[],
  types: readonly string[] | undefined,
): readonly FeedRow[] {
  return types === undefined ? events : events.filter(({ type }) => types.includes(type));
}

/**
 * Reads the feed for a response with one event on each line: up to its present end, for at most
 * {@link READ_TIME} milliseconds. The first wanted event is found before the function returns, so
 * that a response without a line can name the position to which the feed was read.
 */
export async function readFeedLines(
  clock: Clock,
  read: ReadFeed,
  query: FeedLinesQuery,
): Promise<FeedLines> {
  const batches = new FeedBatches(clock, read, query);
  let batch = await batches.next();
  while (ofTypes(batch, query.types).length === 0) {
    if (batches.isEnd) return { batches: none(), next: writeFeedCursor(batches.place) };
    batch = await batches.next();
  }
  return { batches: wanted(batch, batches, query.types), next: undefined };
}

async function* wanted(
  first: readonly FeedRow[],
  batches: FeedBatches,
  types: FeedLinesQuery['types'],
): AsyncGenerator<readonly FeedRow[]> {
  yield ofTypes(first, types);
  while (!batches.isEnd) yield ofTypes(await batches.next(PATIENCE_DURING_RESPONSE), types);
}

async function* none(): AsyncGenerator<readonly FeedRow[]> {
  // A response without events.
}

/** Reads batch after batch of the feed, until one of the limits of a response is reached. */
class FeedBatches {
  place: FeedPlace;
  #left: number;
  #isLast = false;
  readonly #ends: number;

  constructor(
    private readonly clock: Clock,
    private readonly read: ReadFeed,
    { start, limit }: FeedLinesQuery,
  ) {
    this.place = start;
    this.#left = limit;
    this.#ends = clock.monotonic() + READ_TIME;
  }

  /** Returns true if the response has no further batch. */
  get isEnd(): boolean {
    return this.#isLast || this.#left <= 0 || this.clock.monotonic() >= this.#ends;
  }

  /** Reads the next batch, which is empty at the end of the feed. */
  async next(patience?: number): Promise<readonly FeedRow[]> {
    const batch = await this.read(this.place, Math.min(BATCH, this.#left), patience);
    this.place = batch.at(-1)?.feedPlace ?? this.place;
    this.#left -= batch.length;
    this.#isLast = batch.length < BATCH;
    return batch;
  }
}
