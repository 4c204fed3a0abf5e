import { describe, expect, it } from 'vitest';
import { holderText, takeOrBook, type Booking } from '#platform/gcra/bookings.js';
import { GRACE, gcra, type Rate } from '#platform/gcra/gcra.js';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';

/** A bucket that all credentials share. Each request states the time at which it comes. */
function bucketOf(rate: Rate, places = rate.burst) {
  let tat = 0;
  let bookings: readonly Booking[] = [];
  const ask = (holder: string, now: number) => {
    const taken = takeOrBook({ tat, bookings, rate, holder, places }, now);
    ({ tat, bookings } = taken);
    return taken;
  };
  return { ask, bookings: () => bookings };
}

/**
 * Returns a generator of random numbers. The same seed gives the same numbers in every run, so that
 * a failure can be repeated.
 */
function randomSource(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe.each(Object.entries(TIERS))('bookings in the tier %s', (_, rate) => {
  const { burst, interval } = rate;
  const start = 1_000_000;

  /** Returns a bucket whose burst is used up. */
  function emptied() {
    const bucket = bucketOf(rate);
    for (let n = 0; n < burst; n += 1) bucket.ask('first', start);
    return bucket;
  }

  it('10.20 a refused request books the next slot, and gets the same slot until then', () => {
    const { ask } = emptied();
    expect(ask('patient', start).retryAfter).toBe(interval);
    expect(ask('patient', start + 400).retryAfter).toBe(interval - 400);
    expect(ask('patient', start + interval).allowed).toBe(true);
  });

  it('10.20 each credential has a slot of its own, one interval after the one before', () => {
    const { ask } = emptied();
    for (let n = 1; n <= burst; n += 1) {
      expect(ask(`credential ${n}`, start).retryAfter).toBe(n * interval);
    }
    for (let n = 1; n <= burst; n += 1) {
      expect(ask(`credential ${n}`, start + n * interval).allowed).toBe(true);
    }
  });

  it('10.20 impatient neighbours cannot take the slot of a booking', () => {
    const { ask } = emptied();
    const { retryAfter } = ask('patient', start);
    const comes = start + retryAfter + 900; // the wait in whole seconds, rounded up
    for (let now = start; now < comes; now += 10) ask('impatient', now);
    expect(ask('patient', comes).allowed).toBe(true);
  });

  it('10.20 a flood of 10,000 invented credentials moves no announced booking', () => {
    const { ask, bookings } = emptied();
    const { retryAfter } = ask('patient', start);
    for (let n = 0; n < 10_000; n += 1) ask(`invented ${n}`, start + (n % 500));
    expect(bookings()).toHaveLength(burst);
    expect(ask('patient', start + 500).retryAfter).toBe(retryAfter - 500);
    expect(ask('patient', start + retryAfter).allowed).toBe(true);
  });

  it('10.20 a request without a free place gets the end of the queue, and no booking', () => {
    const { ask, bookings } = emptied();
    for (let n = 1; n <= burst; n += 1) ask(`credential ${n}`, start);
    for (const late of ['late', 'later']) {
      expect(ask(late, start).retryAfter).toBe((burst + 1) * interval);
    }
    expect(bookings().map(({ holder }) => holder)).not.toContain('late');
  });

  it('10.20 a booking lapses two intervals after its slot, and its place becomes free', () => {
    const slot = start + interval;
    const lapses = slot + 2 * interval;
    for (const [now, left] of [
      [lapses - 1, 0],
      [lapses, 2],
    ] as const) {
      const { ask } = emptied();
      ask('absent', start);
      expect(ask('other', now)).toMatchObject({ allowed: true, remaining: left });
      expect(ask('absent', now).allowed).toBe(true);
    }
  });

  it('10.20 a clock that was set back leaves no unusable booking', () => {
    const { ask } = emptied();
    ask('patient', start);
    const { retryAfter } = ask('patient', start - 3_600_000);
    expect(retryAfter).toBeLessThanOrEqual(interval + GRACE);
    expect(ask('patient', start - 3_600_000 + interval + GRACE).allowed).toBe(true);
  });

  it('10.20 without bookings the decisions are those of GCRA', () => {
    const random = randomSource(7);
    let tat = 0;
    let now = start;
    for (let n = 0; n < 2000; n += 1) {
      now += Math.floor(random() ** 3 * 4 * interval);
      const plain = gcra(tat, now, rate);
      const taken = takeOrBook({ tat, bookings: [], rate, holder: 'x', places: 0 }, now);
      expect(taken).toMatchObject({
        allowed: plain.allowed,
        remaining: plain.remaining,
        retryAfter: plain.retryAfter,
      });
      ({ tat } = plain);
    }
  });
});

describe('10.20 bookings of 3,000 random groups of clients', () => {
  const random = randomSource(20_261_122);
  const whole = (from: number, below: number) => from + Math.floor(random() * (below - from));

  /**
   * Sends requests with patient and impatient credentials at random times. Returns the promises
   * that were broken, the times of the allowed requests, and the number of promises that were
   * checked.
   */
  function simulate(rate: Rate) {
    const { ask } = bucketOf(rate);
    const { interval } = rate;
    const promised = new Map<string, number>();
    const surprises: string[] = [];
    const admitted: number[] = [];
    let kept = 0;
    let now = 1000;
    for (let step = 0; step < 120; step += 1) {
      now += Math.floor(random() ** 3 * 2 * interval);
      // A patient credential comes once, at its slot or a little later. The others come at any
      // time.
      for (const [holder, slot] of promised) {
        if (slot > now || random() < 0.3) continue;
        promised.delete(holder);
        const comes = Math.min(now, slot + 2 * interval - 1);
        if (comes < now) continue; // the booking has lapsed
        kept += 1;
        if (ask(holder, now).allowed) admitted.push(now);
        else surprises.push(`${holder} was promised ${slot} and refused at ${now}`);
      }
      const mark = random() < 0.2 ? '!' : '';
      const holder = `${mark}${random() < 0.5 ? 'patient' : 'impatient'}${whole(0, 4)}.${whole(0, 4)}`;
      if (promised.has(holder)) continue;
      const { allowed, retryAfter, bookings } = ask(holder, now);
      if (allowed) admitted.push(now);
      else if (
        holder.includes('patient') &&
        !holder.includes('impatient') &&
        bookings.some((one) => one.holder === holder)
      ) {
        promised.set(holder, now + retryAfter);
      }
    }
    return { surprises, admitted, kept };
  }

  it('keep every announced slot, and never exceed the rate', () => {
    let promises = 0;
    for (let run = 0; run < 3000; run += 1) {
      const rate = { burst: whole(1, 9), interval: whole(10, 100) };
      const { surprises, admitted, kept } = simulate(rate);
      admitted.forEach((until, last) => {
        for (let first = 0; first <= last; first += 1) {
          const elapsed = until - (admitted[first] ?? 0);
          const most = rate.burst + (elapsed + GRACE) / rate.interval;
          if (last - first + 1 > most) surprises.push(`${last - first + 1} in ${elapsed} ms`);
        }
      });
      expect(surprises, JSON.stringify(rate)).toEqual([]);
      promises += kept;
    }
    expect(promises).toBeGreaterThan(20_000);
  });
});

describe('10 a removal beside the impatient workers of its own token', () => {
  const rate = TIERS.general;
  const { burst, interval } = rate;

  /**
   * Lets 30 workers with one token send requests every 50 ms, and a DELETE after 30 seconds. It
   * sends the DELETE again when the wait that it was told is over. Returns how long the DELETE
   * waited, in milliseconds, and how often it was refused.
   */
  function waitOfRemoval(paths: number, removal: string) {
    const { ask } = bucketOf(rate);
    const begin = 1_000_000;
    let due: number | undefined;
    let told = 0;
    for (let now = begin; now < begin + 120_000; now += 50) {
      for (let worker = 0; worker < 30; worker += 1) {
        ask(holderText('token', `PATCH ${(worker + now / 50) % paths}`, false), now);
      }
      if (now < begin + 30_000) continue; // the queue is full by then
      if (due !== undefined && now < due) continue;
      const { allowed, retryAfter } = ask(removal, now);
      if (allowed) return { waited: now - begin - 30_000, told };
      told += 1;
      due = now + Math.ceil(retryAfter / 1000) * 1000;
    }
    return { waited: Infinity, told };
  }

  it('waits once, as long as it was told, and at most four intervals', () => {
    for (const paths of [1, 7, 30, 1000]) {
      const { waited, told } = waitOfRemoval(paths, holderText('token', 'DELETE', true));
      expect(told).toBeLessThanOrEqual(1);
      expect(waited).toBeLessThanOrEqual(4 * interval);
    }
  });

  it('any other request keeps the booking of its own method and path', () => {
    for (const paths of [1, 2]) {
      const { told } = waitOfRemoval(paths, holderText('token', 'PATCH of another', false));
      expect(told).toBeLessThanOrEqual(1);
    }
  });

  it('moves no announced booking, however many removals come', () => {
    const { ask, bookings } = bucketOf(rate);
    for (let n = 0; n < burst; n += 1) ask(holderText('a', 'GET', false), 0);
    const holders = [
      ...Array.from({ length: 15 }, (_, n) => holderText(`c${n % 3}`, `PATCH ${n}`, false)),
      ...Array.from({ length: 8 }, (_, n) => holderText('c1', `DELETE ${n}`, true)),
    ];
    for (const holder of holders) ask(holder, 0);
    const told = bookings().toSorted((one, other) => one.slot - other.slot);
    expect(told).toHaveLength(burst);
    for (const { holder, slot } of told) expect(ask(holder, slot).allowed).toBe(true);
  });
});
