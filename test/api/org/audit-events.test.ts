import { randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TenantWork } from '../../../src/platform/database/tenants/tenant-work.js';
import { AuditLog } from '../../../src/domain/audit/audit.repository.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { addMember, idOf, orgApi } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';

interface Event {
  readonly id: string;
  readonly type: string;
  readonly created_at: string;
  readonly details: Record<string, unknown>;
}

let app: TestApp;
let ada: Client;
let bob: Client;
let eve: Client;
let orgId: string;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled('ada@log.example'));
  ({ client: bob } = await app.enrolled('bob@log.example'));
  ({ client: eve } = await app.enrolled('eve@other-log.example'));
  const [row] = await rows<{ org_id: string }>(
    app.dataSource,
    `SELECT org_id FROM users WHERE email = 'ada@log.example'`,
  );
  orgId = row?.org_id ?? '';
});
afterAll(() => app.close());

const page = (browser: Client, query = ''): Promise<Answer> =>
  orgApi(browser, 'GET', `/audit-events${query && `?${query}`}`);

const events = async (browser: Client, query = '') => {
  const answer = await page(browser, query);
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return answer.json as { events: Event[]; next: string | null };
};

/**
 * Inserts an event for each time into an organization. Returns their ids in the reverse order of
 * the times, the newest first.
 */
async function write(org: string, times: readonly string[], type = 'logout'): Promise<string[]> {
  const ids = times.map(() => randomUUID());
  await rows(
    app.dataSource,
    `INSERT INTO audit_events (id, type, class, org_id, created_at)
     SELECT id, $3, 'auth', $4, at FROM unnest($1::uuid[], $2::timestamptz[]) AS t (id, at)`,
    [ids, times, type, org],
  );
  return ids.toReversed();
}

/** The number of organizations that {@link organization} has created. */
let organizations = 0;
async function organization(): Promise<{ readonly admin: Client; readonly org: string }> {
  organizations += 1;
  const email = `ada@log-${organizations}.example`;
  const { client } = await app.enrolled(email);
  const [row] = await rows<{ org_id: string }>(
    app.dataSource,
    'SELECT org_id FROM users WHERE email = $1',
    [email],
  );
  const org = row?.org_id ?? '';
  await rows(app.dataSource, 'DELETE FROM audit_events WHERE org_id = $1', [org]);
  return { admin: client, org };
}

const lines = async (browser: Client, query = '') => {
  const answer = await browser.get(`/api/v1/org/audit-events${query && `?${query}`}`, {
    headers: { accept: 'application/x-ndjson' },
    address: newAddress(),
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
  return answer.text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Event);
};

/** Returns a cursor for a time, at which there need not be an event. */
const cursorOf = (at: string) =>
  Buffer.from(`${at} 00000000-0000-0000-0000-000000000000`).toString('base64url');

describe('the audit events of an organization', () => {
  it('are visible to its admins, the newest first, with all fields', async () => {
    const { events: found, next } = await events(ada);
    expect(next).toBeNull();
    const times = found.map(({ created_at }) => created_at);
    expect(times).toEqual(times.toSorted().toReversed());
    expect(found.at(-1)).toEqual({
      id: expect.any(String),
      type: 'identity_bound',
      class: 'auth',
      actor_id: await idOf(app, 'ada@log.example'),
      subject_id: await idOf(app, 'ada@log.example'),
      actor_email: 'ada@log.example',
      subject_email: 'ada@log.example',
      client_name: null,
      request_id: expect.any(String),
      ip: expect.any(String),
      user_agent: expect.any(String),
      details: expect.objectContaining({ provider: 'demo' }),
      created_at: expect.stringMatching(/Z$/),
    });
  });

  it('are hidden from members, and from every other organization', async () => {
    const refused = await page(bob);
    expect([refused.status, refused.json.code]).toEqual([403, 'admin_required']);
    expect((await page(app.client())).status).toBe(401);
    const others = new Set((await events(eve)).events.map(({ id }) => id));
    const ours = (await events(ada)).events.map(({ id }) => id);
    expect(ours.filter((id) => others.has(id))).toEqual([]);
    expect(await count(app.dataSource, 'audit_events WHERE org_id = $1', [orgId])).toBe(
      ours.length,
    );
    const byBob = await events(eve, `user=${await idOf(app, 'bob@log.example')}`);
    expect(byBob.events).toEqual([]);
    expect((await events(eve, 'email=bob@log.example')).events).toEqual([]);
  });

  it('are paged, each event once, also where many have one time', async () => {
    const { admin, org } = await organization();
    await write(org, Array<string>(7).fill('2026-01-01T00:00:00.123456Z'));
    await write(org, ['2026-01-01T00:00:00.123457Z', '2026-01-01T00:00:00.123455Z']);
    const seen: string[] = [];
    let after = '';
    for (let pages = 1; pages <= 5; pages += 1) {
      const found = await events(admin, `limit=2${after && `&after=${after}`}`);
      seen.push(...found.events.map(({ id }) => id));
      expect(found.next === null).toBe(pages === 5);
      after = found.next ?? '';
    }
    expect([seen.length, new Set(seen).size]).toEqual([9, 9]);
    const all = (await events(admin)).events.map(({ id }) => id);
    expect(seen).toEqual(all);
  });

  it('of one transaction are listed in the order of writing', async () => {
    const { admin, org } = await organization();
    const log = app.nest.get(AuditLog);
    const origin = { requestId: 'one transaction', ip: undefined, userAgent: undefined };
    const turns = Array.from({ length: 9 }, (_, turn) => turn);
    await app.dataSource.transaction(async (tx) => {
      const event = { type: 'logout', actorId: null, subjectId: null, orgId: org, origin } as const;
      for (const turn of turns) await log.record(tx, { ...event, details: { turn } });
    });
    const found = await events(admin);
    expect(found.events.map(({ details }) => details['turn'])).toEqual(turns.toReversed());
  });

  it('continue after an event that was deleted since', async () => {
    const { admin, org } = await organization();
    const ids = await write(org, ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z']);
    const { next } = await events(admin, 'limit=1');
    await rows(app.dataSource, 'DELETE FROM audit_events WHERE id = $1', [ids[0]]);
    const rest = await events(admin, `after=${next}`);
    expect(rest.events.map(({ id }) => id)).toEqual([ids[1]]);
  });

  it('are found by type, user, e-mail and time, and by all of them at once', async () => {
    const adaId = await idOf(app, 'ada@log.example');
    const bobId = await idOf(app, 'bob@log.example');
    await rows(app.dataSource, "DELETE FROM audit_events WHERE type = 'admin_access_refused'");
    await orgApi(ada, 'POST', `/members/${bobId}/promote`);
    await orgApi(ada, 'POST', `/members/${bobId}/demote`);
    const types = async (query: string) =>
      (await events(ada, query)).events.map(({ type }) => type).toReversed();
    expect(await types('type=admin_demote')).toEqual(['admin_demote']);
    expect(await types('type=token_exchange')).toEqual([]);
    const ofBob = ['identity_bound', 'enrollment', 'admin_promote', 'admin_demote'];
    expect(await types(`user=${bobId}`)).toEqual(ofBob);
    // The upstream login before the enrollment has only an e-mail address, because the user did not
    // exist yet.
    expect(await types('email=%20BOB@log.example')).toEqual(['upstream_login', ...ofBob]);
    expect(await types(`user=${adaId}&type=admin_demote`)).toEqual(['admin_demote']);
    expect(await types(`user=${adaId}&email=bob@log.example`)).toEqual(ofBob.slice(2));
  });

  it('of a removed user are found by the e-mail in the events', async () => {
    const id = await addMember(app, 'ada@log.example', 'gone@log.example');
    await orgApi(ada, 'POST', `/members/${id}/remove`);
    const found = await events(ada, 'email=gone@log.example');
    expect(found.events.map(({ type }) => type)).toEqual(['admin_remove_user']);
  });

  it('are filtered by a start time, and by an end time', async () => {
    const { admin, org } = await organization();
    const [third, second, first] = await write(org, [
      '2026-03-01T00:00:00Z',
      '2026-03-02T00:00:00Z',
      '2026-03-03T00:00:00Z',
    ]);
    const ids = async (query: string) => (await events(admin, query)).events.map(({ id }) => id);
    expect(await ids('from=2026-03-02T00:00:00Z')).toEqual([third, second]);
    expect(await ids('to=2026-03-02T00:00:00Z')).toEqual([first]);
    expect(await ids('from=2026-03-02T01:00:00%2B01:00&to=2026-03-02T00:00:01Z')).toEqual([second]);
  });

  it.each([
    'after=x',
    `after=${'x'.repeat(129)}`,
    `after=${'x'.repeat(129)}&order=asc`,
    ...[
      '2026-99-99T00:00:00.000000Z',
      '2024-02-30T00:00:00.000000Z',
      '2024-01-01T24:00:00.000000Z',
      '0000-01-01T00:00:00.000000Z',
    ].map((at) => `after=${cursorOf(at)}`),
    'limit=0',
    'limit=1001',
    'user=bob',
    'from=yesterday',
    'to=2026-03-02',
    "type=a'b",
    'type=logout&type=login_success',
  ])('are refused with %s', async (query) => {
    const answer = await page(ada, query);
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });

  it('include failed logins with a key of a member', async () => {
    const { client, key } = await app.enrolled('carol@log.example');
    const { state, publicKey } = (await client.post('/login/webauthn/start', {})).json;
    const credential = key.get(publicKey, 'https://evil.example');
    expect((await client.post('/login/webauthn/complete', { state, credential })).status).toBe(400);
    const failed = await events(ada, 'type=login_failed&email=carol@log.example');
    expect(failed.events).toHaveLength(1);
  });
});

describe('as lines (NDJSON)', () => {
  it('are all exported, filtered, the newest first, with any page size', async () => {
    const { admin, org } = await organization();
    const day = Date.parse('2026-05-01T00:00:00Z');
    const times = Array.from({ length: 1203 }, (_, n) => new Date(day + n).toISOString());
    const ids = await write(org, times);
    await write(org, ['2026-05-02T00:00:00Z'], 'enrollment');
    expect((await lines(admin, 'type=logout')).map(({ id }) => id)).toEqual(ids);
    expect(await lines(admin)).toHaveLength(1204);
    expect(await lines(admin, 'type=logout&limit=601')).toHaveLength(601);
    expect(await lines(admin, 'type=token_exchange')).toEqual([]);
    expect(await lines(eve, 'type=token_exchange')).toEqual([]);
  });

  it('are hidden from other users, and are a page unless requested', async () => {
    const options = { headers: { accept: 'application/x-ndjson' }, address: newAddress() };
    expect((await bob.get('/api/v1/org/audit-events', options)).status).toBe(403);
    expect((await page(ada)).headers.get('content-type')).toMatch('application/json');
    expect((await page(ada)).headers.get('vary')).toMatch('Accept');
  });

  it('are read no faster than they are sent, and no further when the reader is gone', async () => {
    const { admin, org } = await organization();
    const inserted = atScale({ small: 5_000, full: 20_000 });
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, org_id, created_at, details)
       SELECT gen_random_uuid(), 'logout', 'auth', $1, now() - n * interval '1 second',
              jsonb_build_object('text', repeat('x', 80000000 / ${inserted}))
       FROM generate_series(1, ${inserted}) AS n`,
      [org],
    );
    const work = app.nest.get(TenantWork, { strict: false });
    const original = work.costly.bind(work);
    let batches = -1; // the first call reads the filter, and the batches follow
    work.costly = (...parameters) => {
      batches += 1;
      return original(...parameters);
    };
    try {
      const asked = httpRequest(`${app.baseUrl}/api/v1/org/audit-events`, {
        headers: {
          accept: 'application/x-ndjson',
          cookie: `svc_session=${admin.cookie('svc_session')}`,
          'x-forwarded-for': newAddress(),
        },
      });
      asked.on('error', () => undefined).end();
      await new Promise<void>((resolve, reject) => {
        asked.once('error', reject).once('response', (response) => {
          response.once('data', () => {
            response.pause();
            resolve();
          });
        });
      });
      let whilePaused;
      do {
        whilePaused = batches;
        await settled();
        // until no further batch is read, because the socket buffers are full
      } while (batches > whilePaused);
      // at most half of all batches (of 500 events) fit into the buffers
      expect(whilePaused).toBeLessThan(inserted / 1000);
      asked.destroy();
      await settled();
      expect(batches).toBeLessThanOrEqual(whilePaused + 1);
    } finally {
      work.costly = original;
    }
  });
});

/**
 * Runs the query of a batch ten times. In that time a server which read ahead would read several
 * batches, at any speed of the machine.
 */
async function settled(): Promise<void> {
  const batch = 'SELECT id, details FROM audit_events ORDER BY id LIMIT 500';
  for (let turn = 0; turn < 10; turn += 1) await rows(app.dataSource, batch);
}
