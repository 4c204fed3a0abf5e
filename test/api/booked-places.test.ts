import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** A request to a route of the General tier: 401 where it is let in. */
const ask = (client: Client, credential: string, method = 'GET') =>
  client.send(method, '/v1/keys', {
    headers: credential === '' ? {} : { authorization: `Bearer ${credential}` },
  });

/** Asks until refused, and returns for how many seconds. */
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
])('10.20 beside impatient clients of one address with %s', (_, credential) => {
  it('a DELETE that waits exactly as long as it was told is let in', async () => {
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
    }
    expect((await ask(client, 'patient', 'DELETE')).status).not.toBe(429);
    expect(refused).toBeGreaterThan(20);
  });
});
