import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SEARCH_BOUNDS } from '#domain/audit/audit-search.repository.js';
import { modelName } from '#domain/keys/authenticators/authenticator-models.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';

interface Written {
  readonly type?: string;
  readonly subject?: string;
  readonly actor?: string;
  readonly actorId?: string;
  readonly subjectId?: string;
  readonly client?: string;
  readonly ip?: string;
  readonly request?: string;
  readonly details?: object;
  readonly at?: string;
}

let app: TestApp;
let ada: Client;
let eve: Client;
let org: string;
let otherOrg: string;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled('ada@search.example'));
  ({ client: eve } = await app.enrolled('eve@other-search.example'));
  [org, otherOrg] = await Promise.all([
    orgOf('ada@search.example'),
    orgOf('eve@other-search.example'),
  ]);
});
afterAll(() => app.close());

async function orgOf(email: string): Promise<string> {
  const [row] = await rows<{ org_id: string }>(
    app.dataSource,
    'SELECT org_id FROM users WHERE email = $1',
    [email],
  );
  return row?.org_id ?? '';
}

/** Inserts an event into an organization. Returns its id. */
async function write(of: string, event: Written): Promise<string> {
  const id = randomUUID();
  await rows(
    app.dataSource,
    `INSERT INTO audit_events (id, type, class, org_id, subject_email, actor_email, client_name, ip, request_id, details, created_at,
                               actor_id, subject_id)
     VALUES ($1, $2, 'auth', $3, $4, $5, $6, $7, $8, $9, coalesce($10, clock_timestamp()), $11, $12)`,
    [
      id,
      event.type ?? 'logout',
      of,
      event.subject ?? null,
      event.actor ?? null,
      event.client ?? null,
      event.ip ?? null,
      event.request ?? null,
      JSON.stringify(event.details ?? {}),
      event.at ?? null,
      event.actorId ?? null,
      event.subjectId ?? null,
    ],
  );
  return id;
}

/** Returns the ids of the events that a search finds, the newest first. */
async function found(browser: Client, query: string): Promise<string[]> {
  const { status, json, text } = await orgApi(browser, 'GET', `/audit-events?${query}`);
  expect([status, text]).toEqual([200, expect.any(String)]);
  return (json.events as { id: string }[]).map(({ id }) => id);
}

describe('a search of the audit log', () => {
  const AAGUID = '2fc0579f-8113-47ea-b116-bb5a8db9202a';
  const KEY = randomUUID();

  it.each<[string, Written, string]>([
    [
      'the address of a removed user',
      { subject: 'gone@search.example', subjectId: randomUUID() },
      'person=Gone@search.example',
    ],
    [
      'the address of a removed admin who acted',
      { actor: 'boss@search.example', actorId: randomUUID(), subjectId: randomUUID() },
      'person=boss@search.example',
    ],
    ['the id of an application', { details: { client_id: 'shop-1' } }, 'client=shop-1'],
    [
      'the name of a removed application at the time',
      { details: { client_id: 'x' }, client: 'Old Shop' },
      'client=old%20shop',
    ],
    [
      'the application of an exchanged token',
      { details: { client_id: 'svc', application_id: 'cluster-1' } },
      'client=cluster-1',
    ],
    ['the id of a key', { details: { key_id: KEY } }, `key=${KEY}`],
    ['the AAGUID of a model', { details: { aaguid: AAGUID } }, `key=${AAGUID}`],
    ['an address', { ip: '198.51.100.7' }, 'ip=198.51.100.7'],
    ['a network', { ip: '203.0.113.200' }, 'ip=203.0.113.128/25'],
    ['a network of IPv6', { ip: '2001:db8::5' }, 'ip=2001:db8::/64'],
    ['a request', { request: 'the-request' }, 'request=the-request'],
  ])('finds events by %s, and those of no other organization', async (_, event, query) => {
    const own = await write(org, event);
    const foreign = await write(otherOrg, event);
    expect(await found(ada, query)).toEqual([own]);
    expect(await found(ada, `${query}&type=logins`)).toEqual([own]);
    expect(await found(ada, `${query}&type=keys`)).toEqual([]);
    expect(await found(eve, query)).toEqual([foreign]);
  });

  it('finds events by a part of the name of a model', async () => {
    const model = modelName(AAGUID) ?? '';
    expect(model).not.toBe('');
    const own = await write(org, { details: { aaguid: AAGUID, unique: 1 }, request: 'by-model' });
    const query = `key=${encodeURIComponent(model.slice(0, 12).toUpperCase())}&request=by-model`;
    expect(await found(ada, query)).toEqual([own]);
    expect(await found(ada, 'key=no%20such%20model')).toEqual([]);
  });

  it('finds the events of a member whose name is longer than the index has of it', async () => {
    const [id, name] = [randomUUID(), `${'Long '.repeat(15)}Name`];
    await rows(
      app.dataSource,
      `INSERT INTO users (id, org_id, email, name) VALUES ($1, $2, 'long@search.example', $3)`,
      [id, org, name],
    );
    const own = await write(org, { subjectId: id, subject: 'long@search.example' });
    for (const person of [name.slice(0, 64), name.slice(0, 70), name]) {
      expect(await found(ada, `person=${encodeURIComponent(person)}`), person).toEqual([own]);
    }
  });

  it('finds the events of a member by the beginning of the name, also after a change of the address', async () => {
    const id = randomUUID();
    await rows(
      app.dataSource,
      `INSERT INTO users (id, org_id, email, name) VALUES ($1, $2, 'new@search.example', 'Zoë 100%_Quinn')`,
      [id, org],
    );
    const own = await write(org, { subjectId: id, subject: 'earlier@search.example' });
    for (const person of [
      'zoë',
      'Zoë 100%_q',
      'earlier@search.example',
      'new@search.example',
      id,
    ]) {
      expect(await found(ada, `person=${encodeURIComponent(person)}`), person).toEqual([own]);
    }
    expect(await found(ada, 'person=Zo%25')).toEqual([]);
    expect(await found(eve, `person=${id}`)).toEqual([]);
  });

  it('refuses a beginning that more than 10 members share, and says so', async () => {
    await rows(
      app.dataSource,
      `INSERT INTO users (id, org_id, email, name)
       SELECT gen_random_uuid(), $1, 'same-' || n || '@search.example', 'Same ' || n FROM generate_series(1, 11) n`,
      [org],
    );
    const { status, json } = await orgApi(ada, 'GET', '/audit-events?person=same');
    expect([status, json.code]).toEqual([400, 'too_many']);
    expect(await found(ada, 'person=same%201')).toEqual([]);
  });

  it('finds no SSH certificate by the id of a key', async () => {
    await write(org, { type: 'ssh_credential', details: { key_id: 'ada@search.example@host' } });
    expect(await found(ada, 'key=ada@search.example@host')).toEqual([]);
  });

  it('for a group of types finds each of them', async () => {
    const request = 'a-group';
    const types = ['key_registered', 'key_removed', 'enrollment', 'logout', 'ssh_credential'];
    const ids: string[] = [];
    for (const type of types) ids.unshift(await write(org, { type, request }));
    expect(await found(ada, `type=keys&request=${request}`)).toEqual(ids.slice(2));
    const all = await found(ada, 'type=keys&limit=1000');
    expect(all.filter((id) => ids.includes(id))).toEqual(ids.slice(2));
  });

  it.each([
    'ip=10.1',
    'ip=10.0.0.0/33',
    'person=',
    'client=%00',
    'key=',
    'format=xml',
    'type=every',
  ])('is refused with %s', async (query) => {
    const { status, json } = await orgApi(ada, 'GET', `/audit-events?${query}`);
    expect([status, json.code]).toEqual([400, 'invalid_request']);
  });
});

describe('a search for rare events', () => {
  const bounds = { ...SEARCH_BOUNDS };
  /** The factor for the number of events and for the bounds of a search in this run. */
  const part = atScale({ small: 0.1, full: 1 });
  const others = 25_000 * part;
  let admin: Client;
  let own: string;
  const rare: string[] = [];
  beforeAll(async () => {
    ({ client: admin } = await app.enrolled('ada@rare.example'));
    own = await orgOf('ada@rare.example');
    await rows(app.dataSource, 'DELETE FROM audit_events WHERE org_id = $1', [own]);
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, org_id, created_at, ip, details)
       SELECT gen_random_uuid(), 'login_success', 'auth', $1, '2026-10-01T00:00:00Z'::timestamptz + n * interval '1 second' / ${part},
              ('10.7.' || n / 250 % 250 || '.' || n % 250)::inet, '{"client_id": "often"}'
       FROM generate_series(1, ${others}) AS n`,
      [own],
    );
    const times = ['2026-10-01T00:00:00.5Z', '2026-10-01T03:00:00.5Z', '2026-10-01T06:00:00.5Z'];
    for (const at of times) {
      const details = { client_id: 'often' };
      rare.unshift(await write(own, { type: 'session_ended', ip: '10.7.99.1', details, at }));
    }
    await rows(app.dataSource, 'ANALYZE audit_events');
    SEARCH_BOUNDS.lookBack *= part;
    SEARCH_BOUNDS.fewOfNetwork *= part;
  });
  afterAll(() => Object.assign(SEARCH_BOUNDS, bounds));

  /** Reads all pages of a search. Returns the ids of the events and the number of pages. */
  async function walk(query: string): Promise<{ ids: string[]; pages: number }> {
    const ids: string[] = [];
    let after = '';
    for (let pages = 1; ; pages += 1) {
      const { json } = await orgApi(admin, 'GET', `/audit-events?${query}${after}`);
      ids.push(...(json.events as { id: string }[]).map(({ id }) => id));
      if (json.next === null || pages > 50) return { ids, pages };
      after = `&after=${json.next as string}`;
    }
  }

  it('stops after 10,000 other events, and finds each event once when it goes on', async () => {
    expect(bounds).toEqual({ lookBack: 10_000, fewOfNetwork: 5_000 });
    // The search uses the index of the application, which most events have. It reads each of them
    // to check the type.
    const { ids, pages } = await walk('client=often&type=session_ended');
    expect(ids).toEqual(rare);
    expect(pages).toBe(3);
    expect((await walk('client=often&type=session_ended&limit=1')).ids).toEqual(rare);
  });

  it('by a large network loses no event and repeats none', async () => {
    const { ids } = await walk('ip=10.7.0.0/16&limit=1000');
    expect([ids.length, new Set(ids).size]).toEqual([others + 3, others + 3]);
    expect((await walk('ip=10.7.0.0/16&type=session_ended')).ids).toEqual(rare);
    expect((await walk('ip=10.9.0.0/16')).ids).toEqual([]);
  });

  it('exports all of them', async () => {
    const answer = await admin.get(
      '/api/v1/org/audit-events?format=ndjson&client=often&type=session_ended',
      { address: newAddress() },
    );
    const lines = answer.text.trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { id: string }).id)).toEqual(rare);
  });
});

describe('the paging of the audit log', () => {
  it('loses no event and repeats none while new ones arrive', async () => {
    const { client: admin } = await app.enrolled('ada@arrivals.example');
    const own = await orgOf('ada@arrivals.example');
    await rows(app.dataSource, 'DELETE FROM audit_events WHERE org_id = $1', [own]);
    const before: string[] = [];
    for (let n = 0; n < 40; n += 1) before.unshift(await write(own, { type: 'logout' }));
    for (const query of ['limit=7', 'limit=7&type=logins', 'limit=7&type=logout']) {
      const seen: string[] = [];
      let next: string | null = '';
      while (next !== null) {
        const { json }: { json: { events: { id: string }[]; next: string | null } } = await orgApi(
          admin,
          'GET',
          `/audit-events?${query}${next && `&after=${next}`}`,
        );
        seen.push(...json.events.map(({ id }) => id));
        ({ next } = json);
        await write(own, { type: 'logout' });
      }
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen.filter((id) => before.includes(id))).toEqual(before);
    }
  });
});
