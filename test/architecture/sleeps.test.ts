import { globSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesBelow } from './import-graph.js';
import { sleepsOf } from './sleeps.js';

/**
 * The permitted waits for a fixed time, each with the reason why the test cannot wait for a
 * condition instead.
 */
const REASONS: Readonly<Record<string, string>> = {
  'test/api/database.test.ts: `SELECT pg_sleep(0.2)`': 'a signal ends it at once',
  "test/api/driver-client.test.ts: 'SELECT pg_sleep(30)'":
    'the client gives up after 150 ms, and the test cancels it or cuts the connection',
  'test/api/deprovision.test.ts: delay(1500)':
    'PostgreSQL looks for a deadlock after a second, and no statement tells that it has',
  'test/api/failover-doubts.test.ts: systemClock.sleep(milliseconds)':
    'the clock of the service, which a test watches',
  'test/api/graceful-stop.test.ts: delay(100)': 'the pace of a client that sends slowly',
  "test/api/rate-limits.test.ts: delay(Number(refusal.headers.get('retry-after')) * 1000)":
    'the promise is about real time, between processes; once, and five times at scale',
  'test/api/slow-clients.test.ts: delay(100)': 'the pace of clients that send slowly',
  'test/api/booked-places.test.ts: delay(PAUSE)': 'the pace of a load, 25 ms',
  'test/conformance/ssh-issued-login.test.ts: setTimeout(expiresAt - Date.now() + 500)':
    'the clock of a real sshd decides about a certificate of 10 s',
  'test/support/fake-idp.ts: sleep(idp.misbehaviour.delay * 1000, undefined, { ref: false })':
    'an identity provider that is slow; the service gives up before',
  'test/support/clock-without-polls.ts: clock.sleep(milliseconds, options)':
    'a sleep of the service, under a second',
  'test/support/movable-clock.ts: systemClock.sleep(...parameters)': 'a sleep of the service',
  'test/support/kms-stand-in.ts: delay(roundTrip)': 'the time of a call to KMS',
  'test/api/oauth/batched-queries.test.ts: delay(turn % 10)': 'at most 9 ms',
  'test/support/load.ts: delay(pause)':
    'the pace of a load, so that it leaves the machine to others',
  'test/support/high-availability/fault-suite.ts: delay(SETTLES)': 'rounds of a real Patroni',
  'test/support/high-availability/fault-suite.ts: delay(fault.lasts)':
    'the length of a fault, in which Patroni, etcd and HAProxy act by their own timeouts',
  'test/support/high-availability/patroni-cluster.ts: delay(LOOKS)':
    'the pace of looks, which would slow down the takeover that they wait for',
  'test/support/high-availability/mixed-load.ts: delay(PAUSE)': 'the pace of a load, 40 ms',
  'test/support/high-availability/replica-kills.ts: delay(EVERY)': 'the pace of the kills',
  'test/support/failover/issuance-load.ts: delay(this.gap)': 'the pace of a load, at most 50 ms',
};

describe('a test waits for a condition, and not for a time', () => {
  it('of more than 50 ms, unless a reason is listed', () => {
    const ofPackages = globSync('packages/*/test', { cwd: resolve(import.meta.dirname, '../..') });
    const found = ['test', ...ofPackages]
      .flatMap((folder) => filesBelow(folder, /(?<!\.d)\.[jt]s$/))
      .filter(({ path }) => path !== 'test/architecture/sleeps.test.ts')
      .flatMap(sleepsOf);
    const listed = new Set(Object.keys(REASONS));
    const places = found.map(({ path, call }) => `${path}: ${call}`);
    expect(places.filter((place) => !listed.has(place))).toEqual([]);
    expect([...listed].filter((place) => !places.includes(place))).toEqual([]);
  });

  it.each([
    [
      "import { setTimeout as delay } from 'node:timers/promises';\nawait delay(51);",
      ['delay(51)'],
    ],
    ["import { setTimeout as delay } from 'node:timers/promises';\nawait delay(50);", []],
    [
      'await new Promise((resolve) => { setTimeout(resolve, 1_000); });',
      ['setTimeout(resolve, 1_000)'],
    ],
    ['setTimeout(() => child.kill(), 1_000);', []],
    ['await clock.sleep(span);', ['clock.sleep(span)']],
    ['await page.waitForTimeout(100);', ['page.waitForTimeout(100)']],
    ["await query('SELECT pg_sleep(0.2)');", ["'SELECT pg_sleep(0.2)'"]],
    ["await query('SELECT pg_sleep(0.02)');", []],
  ])('finds %j', (text, calls) => {
    expect(sleepsOf({ path: 'x.ts', text, imports: [] }).map(({ call }) => call)).toEqual(calls);
  });
});
