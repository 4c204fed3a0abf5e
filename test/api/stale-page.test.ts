import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Client } from '../support/client.js';

describe('the session that a page states with its writes', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('refuses the write of a page that was made for another session, and changes nothing', async () => {
    const { client } = await app.enrolled('ada@stale.example');
    const { client: earlier } = await app.enrolled('eve@stale.example');
    const sessionOf = async (of: Client) =>
      /data-session="([^"]+)"/.exec((await of.get('/')).text)?.[1] ?? '';
    const own = await sessionOf(client);
    const end = async (headers: Record<string, string>) => {
      const { status, json } = await client.send('DELETE', `/v1/sessions/${own}`, { headers });
      return { status, json };
    };

    expect(await end({ 'svc-session': await sessionOf(earlier) })).toMatchObject({
      status: 409,
      json: { code: 'stale_page' },
    });
    expect((await client.get('/v1/keys')).status).toBe(200);
    expect((await end({ 'svc-session': own })).status).toBeLessThan(300);
    expect((await client.get('/v1/keys')).status).toBe(401);
  });
});
