import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, expect, it } from 'vitest';
import { SpacedCalls } from '../../../../src/platform/database/queues/spaced-calls.js';
import { TestClock } from '../../../support/test-clock.js';

const INTERVAL = 50;

let clock: TestClock;
let calls: SpacedCalls;
/** The times at which the calls started, in milliseconds since the start of the test. */
let times: number[];
beforeEach(() => {
  clock = new TestClock();
  times = [];
  calls = new SpacedCalls(clock, INTERVAL, () => times.push(clock.monotonic()));
});

async function advance(milliseconds: number): Promise<void> {
  clock.advance(milliseconds);
  await nextTurn();
}

it('calls at once for an event after a quiet interval', async () => {
  calls.note();
  await advance(200);
  calls.note();
  await advance(INTERVAL);
  calls.note();
  expect(times).toEqual([0, 200, 250]);
});

it('calls for an event soon after a call, at the end of the interval and without a further event', async () => {
  calls.note();
  await advance(10);
  calls.note();
  await advance(39);
  expect(times).toEqual([0]);
  await advance(1);
  expect(times).toEqual([0, INTERVAL]);
  await advance(1_000);
  expect(times).toEqual([0, INTERVAL]);
});

it('calls once in an interval for a stream of events, and after the last one', async () => {
  for (let n = 0; n < 500; n += 1) {
    calls.note();
    calls.note();
    await advance(1);
  }
  await advance(INTERVAL);
  expect(times).toEqual(Array.from({ length: 11 }, (_, n) => n * INTERVAL));
});

it('drops the call that is scheduled when it is stopped, and makes no other', async () => {
  calls.note();
  calls.note();
  calls.stop();
  await advance(1_000);
  calls.note();
  await advance(1_000);
  expect(times).toEqual([0]);
});
