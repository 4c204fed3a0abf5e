import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { touchedAgo } from '../../support/keys.js';
import { count, rows } from '../../support/rows.js';

const PATH = '/audit-questions';
const QUESTION = { name: 'The shop', type: 'access', client: 'shop', period: 'last_tuesday' };

let app: TestApp;
let ada: EnrolledUser;
let eve: EnrolledUser;
beforeAll(async () => {
  app = await startTestApp();
  ada = await app.enrolled('ada@asks.example');
  eve = await app.enrolled('eve@other-asks.example');
});
afterAll(() => app.close());

const listed = async (user: EnrolledUser) =>
  (await orgApi(user.client, 'GET', PATH)).json.questions as { id: string; name: string }[];

describe('the saved questions of an organization', () => {
  it('are made, listed and removed, each act with an audit event', async () => {
    const made = await orgApi(ada.client, 'POST', PATH, QUESTION);
    expect(made.status).toBe(201);
    expect(made.json).toEqual({
      id: expect.any(String),
      name: 'The shop',
      filters: { type: 'access', client: 'shop', period: 'last_tuesday' },
      created_at: expect.stringMatching(/Z$/),
    });
    expect(await listed(ada)).toEqual([made.json]);
    const path = `${PATH}/${made.json.id as string}`;
    expect((await orgApi(ada.client, 'DELETE', path)).status).toBe(204);
    expect((await orgApi(ada.client, 'DELETE', path)).status).toBe(404);
    expect(await listed(ada)).toEqual([]);
    const { json } = await orgApi(ada.client, 'GET', '/audit-events?type=changes&limit=2');
    expect(json.events).toMatchObject([
      { type: 'audit_question_removed', details: { name: 'The shop' } },
      { type: 'audit_question_saved', details: { name: 'The shop' } },
    ]);
  });

  it('keep relative days in place of days', async () => {
    const days = { from: '2026-11-17', to: '2026-11-17' };
    const made = await orgApi(ada.client, 'POST', PATH, { ...QUESTION, ...days });
    expect(made.json.filters).toEqual({ type: 'access', client: 'shop', period: 'last_tuesday' });
    await orgApi(ada.client, 'DELETE', `${PATH}/${made.json.id as string}`);
  });

  it('keep the id and the address of a user', async () => {
    const filters = { user: await idOf(app, 'ada@asks.example'), email: 'ada@asks.example' };
    const made = await orgApi(ada.client, 'POST', PATH, { name: 'Ada', ...filters });
    expect([made.status, made.json.filters]).toEqual([201, filters]);
    await orgApi(ada.client, 'DELETE', `${PATH}/${made.json.id as string}`);
  });

  it('of another organization are never listed, and cannot be removed', async () => {
    const made = await orgApi(ada.client, 'POST', PATH, QUESTION);
    const path = `${PATH}/${made.json.id as string}`;
    expect(await listed(eve)).toEqual([]);
    expect((await orgApi(eve.client, 'DELETE', path)).status).toBe(404);
    expect((await listed(ada)).map(({ id }) => id)).toEqual([made.json.id]);
    await orgApi(ada.client, 'DELETE', path);
  });

  it.each<[string, unknown]>([
    ['no name', { type: 'access' }],
    ['an empty name', { name: ' ', type: 'access' }],
    ['a name of two lines', { name: 'a\nb', type: 'access' }],
    ['a name that nobody sees', { name: '\u200b', type: 'access' }],
    ['no filter', { name: 'All' }],
    ['an unknown filter', { name: 'All', colour: 'red' }],
    ['an unknown type', { name: 'All', type: 'colours' }],
    ['an unknown period', { name: 'All', type: 'access', period: 'someday' }],
    ['a network that is none', { name: 'All', ip: '10.1' }],
    ['an id of a user that is none', { name: 'All', user: 'ada' }],
    ['an address of a user that is none', { name: 'All', email: 'ada' }],
    ['a day that is none', { name: 'All', from: '2026-02-30' }],
    ['a filter that is too long', { name: 'All', person: 'a'.repeat(255) }],
  ])('are refused with %s', async (_, body) => {
    const { status, json } = await orgApi(ada.client, 'POST', PATH, body);
    expect([status, json.code]).toEqual([400, 'invalid_request']);
  });

  it('are 30 at most, also of 40 that are made at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        orgApi(ada.client, 'POST', PATH, { ...QUESTION, name: `Q ${n}` }),
      ),
    );
    const statuses = answers.map(({ status }) => status).toSorted();
    expect(statuses.filter((status) => status === 201)).toHaveLength(30);
    expect(
      answers.filter(({ status }) => status !== 201).every(({ status }) => status === 409),
    ).toBe(true);
    expect(await listed(ada)).toHaveLength(30);
    await rows(app.dataSource, 'DELETE FROM saved_questions');
  });

  it('change nothing from another origin, without an origin, without a touch, or as a demoted admin', async () => {
    const writes = () => count(app.dataSource, 'saved_questions');
    const send = (headers: Record<string, string>) =>
      ada.client.send('POST', `/api/v1/org${PATH}`, { body: QUESTION, headers });
    expect((await send({ origin: 'https://evil.example' })).status).toBe(403);
    expect((await send({ origin: '' })).status).toBe(403);
    const stale = { 'svc-session': '01900000-0000-7000-8000-000000000000' };
    expect((await send(stale)).json.code).toBe('stale_page');
    await touchedAgo(app, 'ada@asks.example', 301);
    expect((await orgApi(ada.client, 'POST', PATH, QUESTION)).status).toBe(401);
    await touchedAgo(app, 'ada@asks.example', 0);
    const id = await idOf(app, 'ada@asks.example');
    await rows(app.dataSource, 'UPDATE users SET is_org_admin = false WHERE id = $1', [id]);
    for (const [method, path, body] of [
      ['POST', PATH, QUESTION],
      ['GET', PATH, undefined],
      ['GET', '/audit-events', undefined],
      ['GET', '/audit-events?format=csv', undefined],
    ] as const) {
      const answer = await orgApi(ada.client, method, path, body);
      expect([path, answer.status, answer.json.code]).toEqual([path, 403, 'admin_required']);
    }
    expect(await writes()).toBe(0);
    await rows(app.dataSource, 'UPDATE users SET is_org_admin = true WHERE id = $1', [id]);
  });
});
