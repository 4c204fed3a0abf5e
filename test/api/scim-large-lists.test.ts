import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  MOST_TEXT,
  type ListedUser,
} from '../../src/features/scim/query/user-search.repository.js';
import { ScimResources } from '../../src/features/scim/resources/scim-resources.service.js';
import type { UserResource } from '../../src/features/scim/resources/user-resource.js';
import { RequestsInFlight } from '#platform/http/server/requests-in-flight.service.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { rows } from '../support/rows.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import { ENTERPRISE, insertUsers, made } from '../support/scim-requests.js';

const HOW_MANY = 80;
/** So many users that their list is larger than the buffers of two sockets. */
const VERY_MANY = 200;
/** A title that PostgreSQL stores compressed, and that has its full length when it is read. */
const TITLE = 'x'.repeat(60_000);

interface Shown {
  readonly id: string;
  readonly title?: string;
  readonly displayName?: string;
  readonly schemas: readonly string[];
}

interface List {
  readonly itemsPerPage: number;
  readonly totalResults: number;
  readonly Resources: readonly Shown[];
}

const usersOf = (app: TestApp) =>
  app.nest.get(ScimResources, { strict: false }).users.type as UserResource;

function insertLongUsers(app: TestApp, tenant: ScimTenant, howMany: number): Promise<unknown> {
  return app.dataSource.query(
    `INSERT INTO users (id, org_id, email, scim_managed, user_name, attributes)
     SELECT gen_random_uuid(), $1, n || '@' || $2, true, n || '@' || $2,
            jsonb_build_object('title', $3::text, $4::text, jsonb_build_object('department', n::text))
     FROM generate_series(1, $5::int) n`,
    [tenant.orgId, tenant.domain, TITLE, ENTERPRISE, howMany],
  );
}

/**
 * Requests a list, and returns the response when its headers have arrived. The body is not read. On
 * a busy machine the statement may exceed its time limit (400 `tooMany`), and is then tried again.
 */
async function slowReader(app: TestApp, tenant: ScimTenant): Promise<IncomingMessage> {
  const request = get(`${app.baseUrl}/scim/v2/Users?count=${VERY_MANY}`, {
    agent: false,
    headers: { authorization: `Bearer ${tenant.token}`, 'x-forwarded-for': newAddress() },
  });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  if (response.statusCode === 400) {
    expect(await bodyOf(response)).toContain('takes too long');
    return slowReader(app, tenant);
  }
  expect(response.statusCode).toBe(200);
  return response;
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  return text;
}

const restOf = async (response: IncomingMessage) => JSON.parse(await bodyOf(response)) as List;

describe('a list of users with long attributes', () => {
  let app: TestApp;
  let tenant: ScimTenant;
  let users: UserResource;
  beforeAll(async () => {
    app = await startTestApp();
    tenant = await addTenant(app);
    users = usersOf(app);
    await insertLongUsers(app, tenant, HOW_MANY);
    await made(tenant, 'Groups', { displayName: 'all of us' });
  });
  afterAll(() => app.close());
  afterEach(() => vi.restoreAllMocks());

  const list = async (query: string, from = tenant) => {
    const answer = await from.send('GET', query);
    expect([answer.status, answer.text.slice(0, 200)]).toEqual([200, expect.any(String)]);
    return answer.json as List;
  };

  /** Returns an array that gets the number of characters that each statement of a list reads. */
  function watched(): number[] {
    const lengths: number[] = [];
    const textOf = (found: readonly ListedUser[]) => {
      const texts = found.map(({ user }) => (user ? user.attributes + (user.groups ?? '') : ''));
      lengths.push(texts.join('').length);
    };
    const search = users.search.bind(users);
    const more = users.read.bind(users);
    vi.spyOn(users, 'search').mockImplementation(async (...args) => {
      const page = await search(...args);
      textOf(page.resources);
      return page;
    });
    vi.spyOn(users, 'read').mockImplementation(async (...args) => {
      const found = await more(...args);
      textOf(found);
      return found;
    });
    return lengths;
  }

  it('is read in batches, complete and in order', async () => {
    const ids = (await list('/Users?attributes=id')).Resources.map(({ id }) => id);
    const lengths = watched();
    for (const query of [
      '/Users',
      '/Users?attributes=title',
      '/Users?sortBy=id',
      '/Users?cursor',
    ]) {
      const page = await list(query);
      expect(page).toMatchObject({ itemsPerPage: HOW_MANY, totalResults: HOW_MANY });
      expect(page.Resources.map(({ id }) => id)).toEqual(ids);
      expect(page.Resources.every(({ title }) => title === TITLE)).toBe(true);
    }
    expect(lengths.length).toBeGreaterThan(4 * 4);
    expect(Math.max(...lengths)).toBeLessThan(MOST_TEXT + 64 * 1024);
  });

  it('is sent before the groups, where both are requested', async () => {
    const page = await list('/?filter=id pr&count=100');
    expect([page.itemsPerPage, page.totalResults]).toEqual([HOW_MANY + 1, HOW_MANY + 1]);
    expect(page.Resources).toHaveLength(HOW_MANY + 1);
    expect(page.Resources.at(-1)?.displayName).toBe('all of us');
  });

  it('omits users who are deleted while it is read, and states the count of the users', async () => {
    const other = await addTenant(app);
    await insertLongUsers(app, other, HOW_MANY);
    const more = users.read.bind(users);
    const gone: string[] = [];
    vi.spyOn(users, 'read').mockImplementation(async (...args) => {
      const [first = ''] = args[2];
      gone.push(first);
      await app.dataSource.query('DELETE FROM users WHERE id = $1', [first]);
      return more(...args);
    });
    const page = await list('/Users', other);
    const shown = new Set(page.Resources.map(({ id }) => id));
    expect(gone.length).toBeGreaterThan(2);
    expect([shown.size, page.itemsPerPage]).toEqual(Array(2).fill(HOW_MANY - gone.length));
    expect(gone.filter((id) => shown.has(id))).toEqual([]);
  });

  it('ends in the middle when the database fails, and is then not valid JSON', async () => {
    vi.spyOn(users, 'read').mockRejectedValue(new Error('a planted failure'));
    const before = app.log.length;
    const response = await slowReader(app, tenant);
    await expect(restOf(response)).rejects.toThrow('aborted');
    expect(response.complete).toBe(false);
    const logged = app.log.slice(before).join('');
    expect(logged).toContain('a planted failure');
    vi.restoreAllMocks();
    expect((await list('/Users')).itemsPerPage).toBe(HOW_MANY);
  });

  it('is a regular error when the database fails before the first user', async () => {
    vi.spyOn(users, 'search').mockRejectedValue(new Error('a planted failure'));
    expect((await tenant.send('GET', '/Users')).status).toBe(500);
  });

  it('is one statement without attributes, which are not read unless requested', async () => {
    const lengths = watched();
    const page = await list('/Users?attributes=userName,groups');
    expect(page.Resources[0]?.schemas).toContain(ENTERPRISE);
    expect(lengths).toEqual([expect.any(Number)]);
    expect(lengths[0]).toBeLessThan(HOW_MANY * 100);
  });

  it('is one statement for short attributes, and several for very many users', async () => {
    const other = await addTenant(app);
    const ids = await insertUsers(app, other, 900);
    const lengths = watched();
    const page = await list('/Users?count=200', other);
    expect(page.Resources.map(({ id }) => id)).toEqual(ids.slice(0, 200));
    expect(lengths).toHaveLength(1);
    const whole = await list('/Users?count=1000', other);
    expect(whole.Resources.map(({ id }) => id)).toEqual(ids);
    expect(whole.itemsPerPage).toBe(900);
    lengths.splice(0);
    const thin = await list('/Users?count=1000&attributes=userName', other);
    expect(thin.Resources.map(({ id }) => id)).toEqual(ids);
    expect(lengths).toHaveLength(1);
  });

  it('counts the groups of the users', async () => {
    const other = await addTenant(app);
    const ids = await insertUsers(app, other, 4);
    await rows(
      app.dataSource,
      `WITH many AS (
         INSERT INTO groups (id, org_id, display_name)
         SELECT gen_random_uuid(), $1, n::text FROM generate_series(1, 5000) n RETURNING id
       )
       INSERT INTO group_members (group_id, user_id) SELECT many.id, u FROM many, unnest($2::uuid[]) u`,
      [other.orgId, ids],
    );
    const lengths = watched();
    const page = await list('/Users', other);
    expect(page.Resources.map(({ id }) => id)).toEqual(ids);
    expect(lengths.filter((length) => length > 0)).toHaveLength(Math.ceil(4 / 2));
  });

  it('has no body for HEAD, which reads only the beginning', async () => {
    const lengths = watched();
    const { status, text, headers } = await tenant.send('HEAD', '/Users');
    expect([status, text, lengths.length]).toEqual([200, '', 1]);
    expect(headers.get('content-type')).toMatch(/^application\/scim\+json/);
  });
});

describe('clients that do not read their lists', () => {
  const SLOW = 30; // more than the connections to the database

  it('hold no connection to the database, and get the whole list when they continue to read', async () => {
    const app = await startTestApp({ environment: { SVC_DB_MAX_CONNECTIONS: '25' } });
    const tenant = await addTenant(app);
    await insertLongUsers(app, tenant, VERY_MANY);
    const statements = vi.spyOn(usersOf(app), 'read');
    // They come one after the other, because one organization may run two such statements at once,
    // and a busy machine would let the last ones wait for too long.
    const readers: IncomingMessage[] = [];
    while (readers.length < SLOW) readers.push(await slowReader(app, tenant));
    const other = await addTenant(app); // would wait if the slow readers held all connections
    await made(other, 'Users', { userName: 'somebody' });
    let busy: unknown[];
    do {
      busy = await rows(
        app.dataSource,
        `SELECT FROM pg_stat_activity
         WHERE datname = current_database() AND backend_type = 'client backend' AND state <> 'idle'
           AND pid <> pg_backend_pid()`,
      );
    } while (busy.length > 0);
    // Only as much was read from the database as the socket buffers hold.
    const needed = (VERY_MANY * TITLE.length) / MOST_TEXT;
    expect(statements.mock.calls.length).toBeLessThan((SLOW * needed) / 1.5);
    const [first, ...others] = readers;
    if (!first) throw new Error('nobody reads');
    expect(await restOf(first)).toMatchObject({ itemsPerPage: VERY_MANY, totalResults: VERY_MANY });
    const inFlight = app.nest.get(RequestsInFlight);
    for (const reader of others) reader.destroy();
    while (inFlight.count > 0) await sleep(20);
    statements.mockClear();
    expect((await other.send('GET', '/Users')).json.itemsPerPage).toBe(1);
    expect(statements).not.toHaveBeenCalled();
    await app.close();
  });

  it('are disconnected at the deadline of the request', async () => {
    const app = await startTestApp({ timeouts: { request: 4000 } });
    const tenant = await addTenant(app);
    await insertLongUsers(app, tenant, VERY_MANY);
    const reader = await slowReader(app, tenant);
    const inFlight = app.nest.get(RequestsInFlight);
    while (inFlight.count > 0) await sleep(20);
    await expect(restOf(reader)).rejects.toThrow('aborted');
    await app.close();
  });
});
