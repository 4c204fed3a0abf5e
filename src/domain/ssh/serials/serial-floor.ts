/**
 * The facts that decide at which serial a database continues, if it replaces another database, for
 * example after a failover. Serials and times are microseconds since 1970.
 */
export interface FloorFacts {
  /** The highest serial that the database knows. */
  readonly highest: bigint;
  /**
   * The time at which this database was last confirmed as the database of this service; undefined
   * if it never was.
   */
  readonly confirmedAt: bigint | undefined;
  /**
   * The highest serial that a running process of this service saw in the database before the
   * change; undefined if no such process runs.
   */
  readonly highestSeen: bigint | undefined;
  /** The clock of the database or of this process, whichever is later, in microseconds. */
  readonly now: bigint;
}

/**
 * The distance, in microseconds, of new serials from every serial that the other database may have
 * issued. It is 60 s, because 60 million serials are enough for 5 hours at 3,000 serials a second.
 */
const MARGIN = 60_000_000n;

/**
 * The distance of {@link MARGIN} if no running process of this service saw the database before the
 * change. It is longer, because the database may not know of several changes just before, each of
 * which moved the serials 60 s ahead.
 */
const MARGIN_WITHOUT_WITNESS = 600_000_000n;

/**
 * Returns the last serial (the floor) that another database may have issued, so that this database
 * continues after it and no serial is issued twice.
 *
 * If the serials are ahead of the clock, half of the time since the last confirmed start is added
 * to the floor. Two copies of one database, which know nothing of each other, then get different
 * floors if they start at different times. The floors differ by half a serial for each microsecond
 * between the starts, which is more than the first copy issues meanwhile.
 */
export function floorAfterChange({ highest, confirmedAt, highestSeen, now }: FloorFacts): bigint {
  const since = confirmedAt === undefined ? 0n : larger(now - confirmedAt, 0n);
  const known = larger(highest + since / 2n, highestSeen ?? 0n);
  return larger(now, known) + (highestSeen === undefined ? MARGIN_WITHOUT_WITNESS : MARGIN);
}

/** Returns the larger one of two numbers. */
export function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}
