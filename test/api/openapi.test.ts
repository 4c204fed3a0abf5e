import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';

let app: TestApp;

beforeAll(async () => {
  app = await startTestApp();
});

afterAll(() => app.close());

describe('GET /openapi.json', () => {
  it('serves the document to every origin, with an entity tag and without a limit', async () => {
    const origin = { origin: 'https://elsewhere.example' };
    const { status, headers, json } = await app.client().get('/openapi.json', { headers: origin });
    expect(status).toBe(200);
    expect(headers.get('access-control-allow-origin')).toBe('*');
    expect(json.openapi).toBe('3.1.1');
    expect(json.servers).toEqual([{ url: app.baseUrl }]);
    const condition = { 'if-none-match': headers.get('etag') ?? '' };
    const again = await app.client().get('/openapi.json', { headers: condition });
    expect(again).toMatchObject({ status: 304, text: '' });
  });
});
