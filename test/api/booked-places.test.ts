import { createHash } from 'node:crypto';
import { ThrottlerStorage } from '@nestjs/throttler';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Buckets } from '#platform/rate-limit/buckets/buckets.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { atScale } from '../support/scale.js';

/** Milliseconds between requests of a client that does not wait for the time in `retry-after`. */
const PAUSE = atScale({ small: 25, full: 0 });

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/**
 * Sends a request without a valid credential to a route of the General tier. If the rate limit
 * admits it, the answer is 401.
 */
const ask = (client: Client, credential: string, method = 'GET') =>
  client.send(method, '/v1/keys', {
    headers: credential === '' ? {} : { authorization: `Bearer ${credential}` },
  });

/** Sends requests until one gets 429, and returns the seconds in its `retry-after`. */
async function refusal(client: Client, credential: string, method: string): Promise<number> {
  for (;;) {
    const answer = await ask(client, credential, method);
    if (answer.status === 429) return Number(answer.headers.get('retry-after'));
  }
}

describe.each([
  ['credentials of their own', (n: number) => `impatient ${n % 5}`],
  ['a new credential each time', (n: number) => `invented ${n}`],
  ['no credential', () => ''],
])('10.20 besides impatient clients of one address with %s', (_, credential) => {
  it('a DELETE that waits exactly for the announced time is admitted', async () => {
    const address = newAddress();
    const client = Object.assign(app.client(), { address });
    await refusal(client, credential(0), 'GET');
    let asked = 0;
    let refused = 0;
    const seconds = await refusal(client, 'patient', 'DELETE');
    const due = performance.now() + seconds * 1000;
    while (performance.now() < due) {
      const neighbours = Array.from({ length: 4 }, () => ask(client, credential((asked += 1))));
      const answers = await Promise.all(neighbours);
      refused += answers.filter(({ status }) => status === 429).length;
      await delay(PAUSE);
    }
    expect((await ask(client, 'patient', 'DELETE')).status).not.toBe(429);
    expect(refused).toBeGreaterThan(20);
  });
});

it('10.20 a booking belongs to a credential, a method and a path; the removal of a SCIM user goes first', async () => {
  const take = vi.spyOn(app.nest.get<Buckets>(ThrottlerStorage), 'take');
  const holderOf = async (
    headers: Readonly<Record<string, string>>,
    method = 'GET',
    path = '/v1/keys',
  ) => {
    await app.client().send(method, path, { headers });
    return take.mock.lastCall?.[0].holder() ?? '';
  };
  const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url');
  const credentialOf = async (headers: Readonly<Record<string, string>>) =>
    (await holderOf(headers)).split('.')[0];
  const authorization = 'Bearer of-ada';
  const cookie = 'svc_session=of-bob';
  expect(await credentialOf({ authorization })).toBe(sha256(authorization));
  expect(await credentialOf({ cookie })).toBe(sha256('of-bob'));
  expect(await credentialOf({ authorization, cookie })).toBe(sha256(authorization));
  expect(await credentialOf({})).toBe('');
  expect(await credentialOf({ cookie: 'other=cookie' })).toBe('');
  // Without a credential, method and path do not count: a program could otherwise make up paths and
  // get a booking for each.
  expect(await holderOf({}, 'DELETE', '/scim/v2/Users/1')).toBe(await holderOf({}));
  const holders = [
    await holderOf({ authorization }),
    await holderOf({ authorization }, 'GET', '/v1/sessions'),
    await holderOf({ authorization }, 'DELETE', '/v1/keys/1'),
    await holderOf({ authorization }, 'DELETE', '/scim/v2/Users/1'),
    await holderOf({ authorization }, 'DELETE', '/scim/v2/Groups/1'),
  ];
  expect(new Set(holders).size).toBe(holders.length);
  expect(holders.filter((holder) => holder.startsWith('!'))).toEqual([holders[3]]);
});
