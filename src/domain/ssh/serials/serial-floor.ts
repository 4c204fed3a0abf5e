/**
 * The facts that decide with which serial a database continues. Serials and times are microseconds
 * of the epoch.
 */
export interface FloorFacts {
  /** The highest serial that the database knows. */
  readonly highest: bigint;
  /** The time of the last confirmed start that the database knows; undefined if it knows none. */
  readonly confirmedAt: bigint | undefined;
  /**
   * The highest serial that a process of this service saw before the change; undefined if no such
   * process runs.
   */
  readonly highestSeen: bigint | undefined;
  /** The later one of the clocks of the database and of this process. */
  readonly now: bigint;
}

/**
 * The distance from every serial that may have been issued: 60 s of the clock, which is 5 hours of
 * 3,000 serials a second.
 */
const MARGIN = 60_000_000n;

/**
 * The distance if no process of this service remembers the database before the change. There may
 * have been several changes just before, each of which moved the serials 60 s ahead of the clock.
 * The database may not know of them.
 */
const MARGIN_WITHOUT_WITNESS = 600_000_000n;

/**
 * Returns the last serial that another database may have issued. This database continues after it.
 *
 * While the serials are ahead of the clock, the floor grows by half of the time since the last
 * confirmed start. So two databases with the same past, which know nothing of each other, get
 * different floors. Their distance is more serials than the first database issues.
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
