import { describe, expect, it } from 'vitest';
import { gcra, GRACE, longestDebt, type Rate } from '#platform/gcra/gcra.js';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';

/** Returns a client with this rate. Each request states the time at which it comes. */
function client(rate: Rate) {
  let tat = 0;
  return (now: number) => {
    const decided = gcra(tat, now, rate);
    tat = decided.tat;
    return decided;
  };
}

describe.each(Object.entries(TIERS))('gcra in the tier %s', (_, rate) => {
  const { burst, interval } = rate;
  const start = 1_000_000;

  it('allows a burst at once, counts it down, and refuses the next request', () => {
    const ask = client(rate);
    const answers = Array.from({ length: burst + 1 }, () => ask(start));
    expect(answers.map(({ allowed }) => allowed)).toEqual([...Array(burst).fill(true), false]);
    expect(answers.map(({ remaining }) => remaining)).toEqual([
      ...Array.from({ length: burst }, (__, n) => burst - 1 - n),
      0,
    ]);
    expect(answers.at(-1)?.retryAfter).toBe(interval);
  });

  it('allows one more request for every interval that passes', () => {
    const ask = client(rate);
    for (let n = 0; n < burst; n += 1) ask(start);
    for (let n = 1; n <= 5; n += 1) {
      expect(ask(start + n * interval - GRACE - 1).allowed).toBe(false);
      expect(ask(start + n * interval).allowed).toBe(true);
    }
  });

  it('is not changed by refused requests', () => {
    const ask = client(rate);
    for (let n = 0; n < burst; n += 1) ask(start);
    for (let n = 0; n < 1000; n += 1) expect(ask(start + 1).retryAfter).toBe(interval - 1);
    expect(ask(start + interval).allowed).toBe(true);
  });

  it('gives no advantage to clients that always come a little early', () => {
    const ask = client(rate);
    for (let n = 0; n < burst; n += 1) ask(start);
    let letThrough = 0;
    for (let now = start; now < start + 100 * interval; now += 1) {
      if (ask(now).allowed) letThrough += 1;
    }
    expect(letThrough).toBe(100);
  });

  it('is full again after the longest debt', () => {
    const ask = client(rate);
    for (let n = 0; n < burst; n += 1) ask(start);
    expect(ask(start + longestDebt(rate)).remaining).toBe(burst - 1);
  });
});

describe('gcra on 10,000 random clients', () => {
  /**
   * Returns a generator of random numbers. The same seed gives the same numbers in every run, so
   * that a failure can be repeated.
   */
  function randomSource(seed: number): () => number {
    let state = seed;
    return () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
  }

  const random = randomSource(20_260_115);
  const whole = (from: number, below: number) => from + Math.floor(random() * (below - from));

  /**
   * Sends requests of a client at random times. A leaky bucket, which is simulated too, tells which
   * of them must be allowed.
   */
  function simulate(rate: Rate) {
    const { burst, interval } = rate;
    const ask = client(rate);
    const surprises: string[] = [];
    const admitted: number[] = [];
    let level = 0;
    let now = 1000;
    for (let step = 0; step < 40; step += 1) {
      const elapsed = Math.floor(random() ** 3 * 4 * interval);
      now += elapsed;
      level = Math.max(0, level - elapsed);
      const fits = level + interval <= burst * interval + GRACE;
      const { allowed, tat, retryAfter } = ask(now);
      if (allowed !== fits) surprises.push(`${now}: ${allowed} where ${fits} was right`);
      if (fits) {
        level += interval;
        admitted.push(now);
      } else {
        if (!gcra(tat, now + retryAfter, rate).allowed) surprises.push(`${now}: broke its word`);
        if (gcra(tat, now + retryAfter - GRACE - 1, rate).allowed) surprises.push(`${now}: lied`);
      }
    }
    return { surprises, admitted };
  }

  it('equals a bucket that leaks one request an interval, never exceeds the rate, and keeps each announced wait', () => {
    let refused = 0;
    for (let run = 0; run < 10_000; run += 1) {
      const rate = { burst: whole(1, 7), interval: whole(10, 100) };
      const { surprises, admitted } = simulate(rate);
      admitted.forEach((until, last) => {
        for (let first = 0; first <= last; first += 1) {
          const elapsed = until - (admitted[first] ?? 0);
          const most = rate.burst + (elapsed + GRACE) / rate.interval;
          if (last - first + 1 > most) surprises.push(`${last - first + 1} in ${elapsed} ms`);
        }
      });
      expect(surprises, JSON.stringify(rate)).toEqual([]);
      refused += 40 - admitted.length;
    }
    expect(refused).toBeGreaterThan(50_000);
  });
});
