import { describe, expect, it } from 'vitest';
import { floorAfterChange } from '#domain/ssh/serials/serial-floor.js';

const SECOND = 1_000_000n;
const NOW = 1_763_683_200n * SECOND;
const facts = {
  highest: NOW - 5n * SECOND,
  confirmedAt: undefined,
  highestSeen: NOW - 6n * SECOND,
  now: NOW,
};

describe('the floor of the serials after a change of the database', () => {
  it('is a minute ahead of the clock', () => {
    expect(floorAfterChange(facts)).toBe(NOW + 60n * SECOND);
  });

  it('is a minute ahead of serials that are ahead of the clock', () => {
    const highest = NOW + 9n * SECOND;
    expect(floorAfterChange({ ...facts, highest })).toBe(highest + 60n * SECOND);
  });

  it('is a minute ahead of the highest serial that a process of ours saw, even if the database forgot it', () => {
    const highestSeen = NOW + 9n * SECOND;
    const confirmedAt = NOW - 1_000_000n * SECOND;
    const highest = confirmedAt;
    expect(floorAfterChange({ ...facts, highest, confirmedAt, highestSeen })).toBe(
      highestSeen + 60n * SECOND,
    );
  });

  it('is ten minutes ahead if no process of ours remembers the database', () => {
    expect(floorAfterChange({ ...facts, highestSeen: undefined })).toBe(NOW + 600n * SECOND);
  });

  it('is higher for the later one of two databases that know the same past', () => {
    const confirmedAt = NOW - 20n * SECOND;
    const highest = NOW + 40n * SECOND;
    const first = floorAfterChange({ ...facts, highest, confirmedAt });
    const second = floorAfterChange({ ...facts, highest, confirmedAt, now: NOW + SECOND });
    expect(second).toBeGreaterThan(first + 3_000n);
  });

  it('is never lower than the highest serial if the clock was set back', () => {
    const confirmedAt = NOW + 3_600n * SECOND;
    expect(floorAfterChange({ ...facts, confirmedAt })).toBe(NOW + 60n * SECOND);
  });

  it('goes back to a minute ahead of the clock after ten changes in ten minutes', () => {
    let now = NOW;
    let highest = NOW;
    let confirmedAt = NOW;
    for (let change = 0; change < 10; change += 1) {
      now += 60n * SECOND;
      highest = floorAfterChange({ ...facts, highest, now, confirmedAt });
      confirmedAt = now;
    }
    now += 3_600n * SECOND;
    expect(floorAfterChange({ ...facts, highest, now, confirmedAt })).toBe(now + 60n * SECOND);
  });
});

/**
 * The data that a PostgreSQL server has replayed: the highest serial, and the time when the server
 * was last confirmed.
 */
interface State {
  readonly highest: bigint;
  readonly confirmedAt: bigint;
}

/** The serials that one server issued, in ascending order without gaps. */
interface Issued {
  readonly first: bigint;
  readonly last: bigint;
}

/** Returns how many serials are issued in this time, at 3,000 issuances a second. */
const issuedIn = (microseconds: bigint) => (microseconds * 3_000n) / SECOND;

/**
 * Simulates a deployment whose database moves between PostgreSQL servers. Each server has a clock
 * of its own, and has replayed the changes of the server before only up to some time.
 */
class History {
  readonly issued: Issued[] = [];
  now = NOW;
  /**
   * The highest serial or floor that a process of the service has seen, if it runs on while servers
   * change.
   */
  seen = NOW;
  readonly #states: { readonly at: bigint; readonly state: State }[];
  #state: State;

  constructor() {
    this.#state = { highest: NOW, confirmedAt: NOW };
    this.#states = [{ at: NOW, state: this.#state }];
  }

  /**
   * Issues 3,000 certificates a second for this duration. It keeps the state at some moments, from
   * which a replica may continue.
   */
  issueFor(duration: bigint): void {
    const first = this.#state.highest + 1n;
    const steps = 4n;
    for (let step = 1n; step <= steps; step += 1n) {
      const highest = first - 1n + issuedIn((duration * step) / steps);
      this.#states.push({
        at: this.now + (duration * step) / steps,
        state: { ...this.#state, highest },
      });
      this.#state = { ...this.#state, highest };
    }
    this.now += duration;
    const last = this.#state.highest;
    if (last >= first) this.issued.push({ first, last });
    if (last > this.seen) this.seen = last;
  }

  /**
   * Continues on a server whose data is `lag` microseconds old. Returns the floor: the serials up
   * to it are revoked.
   *
   * @param witness whether a process that saw the highest serial still runs
   */
  changeTo(lag: bigint, clock: bigint, witness: boolean): bigint {
    const replayed = this.#states.findLast(({ at }) => at <= this.now - lag) ?? this.#states[0];
    if (!replayed) throw new Error('there is a first state');
    const { highest, confirmedAt } = replayed.state;
    const highestSeen = witness ? this.seen : undefined;
    const floor = floorAfterChange({ highest, confirmedAt, highestSeen, now: this.now + clock });
    this.#state = { highest: floor, confirmedAt: this.now + clock };
    this.#states.push({ at: this.now, state: this.#state });
    if (!witness || floor > this.seen) this.seen = floor;
    return floor;
  }

  /**
   * Restarts the service on the same database. The highest serial is raised to the time of the
   * service's clock, unless it is higher already.
   *
   * @param clock how far the service's clock is ahead of the true time; negative if it is behind
   */
  restart(clock: bigint): void {
    const now = this.now + clock;
    const { highest } = this.#state;
    this.#state = { highest: highest > now ? highest : now, confirmedAt: now };
    if (this.#state.highest > this.seen) this.seen = this.#state.highest;
    this.#states.push({ at: this.now, state: this.#state });
  }

  /** Returns two runs of serials that overlap; undefined if every serial was issued only once. */
  twice(): readonly Issued[] | undefined {
    const runs = this.issued.toSorted((one, other) => (one.first < other.first ? -1 : 1));
    const index = runs.findIndex((run, at) => at > 0 && run.first <= (runs[at - 1]?.last ?? 0n));
    return index < 0 ? undefined : runs.slice(index - 1, index + 1);
  }
}

/**
 * Returns a function that returns random whole numbers below a bound (mulberry32). The same seed
 * gives the same numbers.
 */
function randomBelow(seed: number): (bound: number) => bigint {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return BigInt(Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound));
  };
}

describe('random histories at 3,000 serials a second', () => {
  const seeds = Array.from({ length: 2_000 }, (_, seed) => seed);

  it('give no serial twice, and revoke every lost one, while a process of ours survives', () => {
    for (const seed of seeds) {
      const random = randomBelow(seed);
      const history = new History();
      for (let event = 0; event < 20; event += 1) {
        history.issueFor(random(20_000) * 1_000n);
        const clock = random(10_001) * 1_000n - 5_000_000n; // up to 5 s ahead or behind
        if (random(3) === 0n) history.restart(clock);
        else {
          // The data is some seconds old, as on a replica, or one hour old, as in a backup.
          const lag = random(4) === 0n ? 3_600n * SECOND : random(20_000) * 1_000n;
          const before = history.issued.at(-1)?.last ?? 0n;
          const floor = history.changeTo(lag, clock, true);
          expect(floor, `seed ${seed}`).toBeGreaterThan(before);
        }
      }
      expect(history.twice(), `seed ${seed}`).toBeUndefined();
    }
  });

  it('give no serial twice with two promotions or a restore inside one lag, with or without a process that remembers', () => {
    for (const seed of seeds) {
      const random = randomBelow(seed);
      const history = new History();
      for (let round = 0; round < 5; round += 1) {
        // If the service starts ten times a day or more often, it issues serials for at most this
        // long between two starts.
        history.issueFor(SECOND * (60n + random(8_640)));
        history.restart(0n);
        history.issueFor(random(120_000) * 1_000n);
        const isRemembered = random(2) === 0n;
        history.changeTo(random(2_500) * 1_000n, 0n, isRemembered);

        // The next server has replayed nothing of what this server did. A restored backup is even
        // older.
        const apart = SECOND * (1n + random(10));
        history.issueFor(apart);
        const before = history.issued.at(-1)?.last ?? 0n;
        const lag = apart + (random(2) === 0n ? 2_500_000n : 30n * SECOND);
        const isStillRemembered = random(2) === 0n;
        const clock = isRemembered || isStillRemembered ? -5n * SECOND : 0n;
        const floor = history.changeTo(lag, clock, isStillRemembered);
        expect(floor, `seed ${seed}`).toBeGreaterThan(before);
      }
      history.issueFor(SECOND);
      expect(history.twice(), `seed ${seed}`).toBeUndefined();
    }
  });
});
