import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { organizationOf, writeEvent } from '../../support/feed-reader.js';
import { sealerOf } from '../../support/seal.js';

let app: TestApp;
let ada: Client;
let org: string;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled('ada@seal.example'));
  org = await organizationOf(app.dataSource, 'ada@seal.example');
});
afterAll(() => app.close());

it('seals', async () => {
  for (let n = 0; n < 5; n += 1) await writeEvent(app.dataSource, org);
  const sealer = sealerOf(app.dataSource);
  await sealer.seal();
  await writeEvent(app.dataSource, org);
  await sealer.seal();
  const answer = await ada.get('/api/v1/org/audit-events?order=asc&format=sealed', { address: newAddress() });
  console.log(answer.status, answer.text);
  const c = await ada.get('/api/v1/org/audit-checkpoints', { address: newAddress() });
  console.log(c.status, c.text);
  const p = await ada.get('/api/v1/org/audit-checkpoints/proof?epoch=' + (c.json as any).checkpoints[0].epoch + '&from=1&to=3', { address: newAddress() });
  console.log(p.status, p.text);
  console.log(app.log.filter((l) => l.includes('audit_checkpoint') || l.includes('seal')));
  expect(answer.status).toBe(200);
});
