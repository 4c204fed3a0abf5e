import type { Clock } from '#platform/clock/clock.js';
import { isOutage } from '#platform/database/statements/faults.js';
import { PATIENCE, PATIENCE_DURING_RESPONSE } from '#platform/database/tenants/tenant-work.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { FeedPlace, FeedRow } from './audit-feed.repository.js';
import { writeFeedCursor } from './feed-cursor.js';

/** The most events of the feed that one statement reads. */
const BATCH = 1_000;

/**
 * The milliseconds after which a response of the feed reads no further batch. It is below the
 * deadline of a request, so that the response ends after a whole line and is not cut off. A program
 * that throws a broken response away would otherwise request the same events again and again.
 */
export const READ_TIME = 20_000;

/**
 * Reads the events of the feed after a position, and waits at most `patience` milliseconds for a
 * connection.
 */
type ReadFeed = (after: FeedPlace, limit: number, patience: number) => Promise<readonly FeedRow[]>;

/** The part of the feed that a response with one event on each line has. */
export interface FeedLinesQuery {
  readonly start: FeedPlace;
  /** The most events to read, including those that `types` leaves out. */
  readonly limit: number;
  /** The types of the events to return; undefined for all. */
  readonly types: readonly string[] | undefined;
  /** Ends the reading, because the client has closed the connection. */
  readonly signal?: AbortSignal | undefined;
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
 * Reads the feed for a response with one event on each line, up to its present end. After {@link
 * READ_TIME} milliseconds it begins no further batch. The function returns after it has found the
 * first wanted event. So a response without a line can name the position to which the feed was
 * read.
 *
 * If a later batch of this search fails because the service is busy, the search ends at the
 * position that it has reached. An error would name no position, so the reader would begin again at
 * its old position.
 */
export async function readFeedLines(
  clock: Clock,
  read: ReadFeed,
  query: FeedLinesQuery,
): Promise<FeedLines> {
  const batches = new FeedBatches(clock, read, query);
  let batch: readonly FeedRow[] | undefined = await batches.next(PATIENCE);
  while (batch && ofTypes(batch, query.types).length === 0) {
    batch = batches.isEnd ? undefined : await nextUnlessBusy(batches);
  }
  return batch
    ? { batches: wanted(batch, batches, query.types), next: undefined }
    : { batches: none(), next: writeFeedCursor(batches.place) };
}

/**
 * Reads the next batch. Returns undefined after a fault that may pass, such as a busy service or a
 * database that does not answer.
 */
async function nextUnlessBusy(batches: FeedBatches): Promise<readonly FeedRow[] | undefined> {
  try {
    return await batches.next(PATIENCE);
  } catch (error) {
    if (!isPassing(error)) throw error;
    return undefined;
  }
}

/** Returns true for a fault after which the same read may succeed later. */
function isPassing(error: unknown): boolean {
  return error instanceof DomainError ? PASSING.has(error.code) : isOutage(error);
}

const PASSING: ReadonlySet<string> = new Set<ErrorCode>([
  'rate_limited',
  'unavailable',
  'too_many',
]);

async function* wanted(
  first: readonly FeedRow[],
  batches: FeedBatches,
  types: FeedLinesQuery['types'],
): AsyncGenerator<readonly FeedRow[]> {
  yield ofTypes(first, types);
  while (!batches.isEnd) {
    const batch = await nextInTime(batches);
    yield ofTypes(batch, types);
  }
}

/**
 * Reads the next batch of a response that has begun. If the time of the response ended while the
 * batch waited, the batch is empty, so that the response ends after a whole line.
 */
async function nextInTime(batches: FeedBatches): Promise<readonly FeedRow[]> {
  try {
    return await batches.next(PATIENCE_DURING_RESPONSE);
  } catch (error) {
    if (!batches.isEnd || !isPassing(error)) throw error;
    return [];
  }
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
  readonly #signal: AbortSignal | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly read: ReadFeed,
    { start, limit, signal }: FeedLinesQuery,
  ) {
    this.place = start;
    this.#left = limit;
    this.#signal = signal;
    this.#ends = clock.monotonic() + READ_TIME;
  }

  /** Returns true if the response has no further batch. */
  get isEnd(): boolean {
    const isCancelled = this.#signal?.aborted === true;
    return this.#isLast || this.#left <= 0 || isCancelled || this.#timeLeft <= 0;
  }

  get #timeLeft(): number {
    return this.#ends - this.clock.monotonic();
  }

  /**
   * Reads the next batch, which is empty at the end of the feed. It waits for a connection at most
   * `patience` milliseconds, and not longer than the time of the response lasts.
   */
  async next(patience: number): Promise<readonly FeedRow[]> {
    // A timer of Node may end up to one millisecond early.
    const wait = Math.min(patience, Math.ceil(this.#timeLeft) + 1);
    const batch = await this.read(this.place, Math.min(BATCH, this.#left), wait);
    this.place = batch.at(-1)?.feedPlace ?? this.place;
    this.#left -= batch.length;
    this.#isLast = batch.length < BATCH;
    return batch;
  }
}
