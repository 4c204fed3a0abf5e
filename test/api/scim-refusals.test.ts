import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { rows } from '../support/rows.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import { foundOrganization } from '../support/scim-organization.js';
import { patchOf } from '../support/scim-requests.js';

let app: TestApp;
let tenant: ScimTenant;
beforeAll(async () => {
  app = await startTestApp();
});
beforeEach(async () => {
  tenant = await addTenant(app);
});
afterAll(() => app.close());

const newUser = async () => {
  const userName = `${randomUUID()}@${tenant.domain}`;
  const { json } = await tenant.send('POST', '/Users', { userName });
  return json as { id: string; userName: string };
};
const events = () =>
  rows(
    app.dataSource,
    `SELECT class, subject_id, details - 'detail' AS details FROM audit_events
     WHERE org_id = $1 AND type = 'scim_request_refused' ORDER BY created_at`,
    [tenant.orgId],
  );
/** Makes the recorded refusals of the token some hours older. */
const pass = (hours: number) =>
  app.dataSource.query(
    'UPDATE scim_refusals SET recorded_at = recorded_at - make_interval(hours => $2) WHERE token_id = $1',
    [tenant.tokenId, hours],
  );
const wrongTitle = patchOf({ op: 'replace', path: 'title', value: true });

it('a refused write is one audit event an hour for each token, resource and reason, with a count', async () => {
  const { id } = await newUser();
  const refuse = () => tenant.send('PATCH', `/Users/${id}`, wrongTitle);
  const answers = await Promise.all(Array.from({ length: 20 }, refuse));
  expect(answers.every(({ status }) => status === 400)).toBe(true);
  const about = {
    scim_token_id: tenant.tokenId,
    method: 'PATCH',
    resource_type: 'User',
    resource_id: id,
  };
  const first = {
    class: 'oauth',
    subject_id: id,
    details: { ...about, reason: 'invalid_value', count: 1 },
  };
  expect(await events()).toEqual([first]);
  await pass(1);
  await refuse();
  await refuse();
  const next = { ...first, details: { ...first.details, count: 20 } };
  expect(await events()).toEqual([first, next]);
  await tenant.send('PATCH', `/Users/${id}`, patchOf({ op: 'replace', path: 'id', value: 'x' }));
  expect(await events()).toEqual([
    first,
    next,
    { ...first, details: { ...about, reason: 'mutability', count: 1 } },
  ]);
});

it('every method, a body that is no JSON, and each operation of a bulk request count', async () => {
  const [user, other] = [await newUser(), await newUser()];
  const named = { userName: other.userName };
  await tenant.send('POST', '/Users', named);
  await tenant.send('PUT', `/Users/${user.id}`, named);
  await tenant.send('PATCH', `/Users/${user.id}`, '{');
  await tenant.send(
    'PATCH',
    `/Users/${randomUUID()}`,
    patchOf({ op: 'add', path: 'title', value: 'x' }),
  );
  await tenant.send('DELETE', `/Users/${user.id}`, undefined, { 'if-match': 'W/"0"' });
  await tenant.send('POST', '/Groups', { displayName: 5e99 });
  const operation = { method: 'PATCH', path: `/Users/${user.id}`, data: wrongTitle };
  await tenant.send('POST', '/Bulk', { Operations: [operation, operation] });
  const found = (await events()).map(({ details }) => {
    const { method, resource_type, resource_id, reason, count } = details as Record<
      string,
      unknown
    >;
    return [method, resource_type, resource_id === user.id, reason, count];
  });
  expect(found).toEqual([
    ['POST', 'User', false, 'uniqueness', 1],
    ['PUT', 'User', true, 'uniqueness', 1],
    ['PATCH', 'User', true, 'malformed_body', 1],
    ['PATCH', 'User', false, 'not_found', 1],
    ['DELETE', 'User', true, 'precondition_failed', 1],
    ['POST', 'Group', false, 'invalid_value', 1],
    ['PATCH', 'User', true, 'invalid_value', 2],
  ]);
});

it('a read, a DELETE of what is gone, and a request without a token are no refused writes', async () => {
  await tenant.send('GET', '/Users?filter=x');
  await tenant.send('POST', '/Users/.search', { filter: 'x' });
  await tenant.send('DELETE', `/Users/${randomUUID()}`);
  await tenant.send('POST', '/Users', {}, { authorization: 'Bearer x' });
  expect(await events()).toEqual([]);
});

it('what a write that ended access left out is on record, also where nothing else changed', async () => {
  const { id } = await newUser();
  const both = patchOf(
    { op: 'replace', path: 'active', value: 'False' },
    { op: 'replace', path: 'nickName', value: true },
  );
  await tenant.send('PATCH', `/Users/${id}`, both);
  await tenant.send('PATCH', `/Users/${id}`, both);
  const [event] = await rows(
    app.dataSource,
    "SELECT details FROM audit_events WHERE org_id = $1 AND type = 'scim_request_refused'",
    [tenant.orgId],
  );
  expect(event?.['details']).toMatchObject({
    reason: 'left_out',
    detail: 'nickName (invalid_value)',
  });
  expect(await rows(app.dataSource, 'SELECT total::int FROM scim_refusals')).toContainEqual({
    total: 2,
  });
});

it('an admin sees refused writes by the API and on the page of the SCIM tokens, of the own organization alone', async () => {
  const { admin, scim } = await foundOrganization(app, 'refused.example');
  const made = await scim('POST', '/Users', { userName: 'grace@refused.example' });
  await scim('PATCH', `/Users/${made.json.id}`, wrongTitle);
  const [foreign] = [await newUser()];
  await tenant.send('PATCH', `/Users/${foreign.id}`, wrongTitle);
  const { json } = await admin.client.get('/api/v1/org/scim-tokens');
  expect(json.refused_writes).toEqual([
    expect.objectContaining({
      resource_id: made.json.id,
      reason: 'invalid_value',
      count: 1,
      method: 'PATCH',
    }),
  ]);
  const page = await admin.client.get('/admin/scim-tokens');
  expect(page.text).toContain(`/admin/members/${made.json.id}`);
  expect(page.text).not.toContain(foreign.id);
});

it('ids that a client makes up are one row and one event an hour', async () => {
  const guess = () => tenant.send('PATCH', `/Users/${randomUUID()}`, '{');
  const bulk = patchOf({ op: 'replace', path: 'title', value: true });
  await Promise.all(Array.from({ length: 20 }, guess));
  await tenant.send('POST', '/Bulk', {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
    Operations: Array.from({ length: 5 }, () => ({
      method: 'PATCH',
      path: `/Users/${randomUUID()}`,
      data: { ...bulk, Operations: 'none' },
    })),
  });
  const kept = await rows(
    app.dataSource,
    'SELECT resource_id FROM scim_refusals WHERE token_id = $1',
    [tenant.tokenId],
  );
  const reasons = new Set((await events()).map((event) => JSON.stringify(event)));
  expect(kept.every((row) => (row as { resource_id: string }).resource_id === '')).toBe(true);
  expect(kept.length).toBeLessThanOrEqual(3);
  expect(reasons.size).toBe(kept.length);
});

it('/Me is 501, and no error of the service in the log', async () => {
  const from = app.log.length;
  expect((await tenant.send('GET', '/Me')).status).toBe(501);
  const lines = app.log.slice(from).filter((line) => line.includes('not_implemented'));
  expect(lines).toHaveLength(1);
  expect(lines[0]).not.toMatch(/error"?:? ?(?:50|\[)|"level":"?(?:50|error)|\berror\b/i);
});
