import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MEMBER_QUERY } from '../../../src/domain/admin/members/member-search.js';
import { searchMembers } from '../../../src/domain/admin/members/member-search.repository.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';

const ADMIN = 'ada@search.example';
const FIPS = 'c1f9a0bc-1dd2-404a-b27f-8e29047a43fd';

let app: TestApp;
let ada: Client;
let orgId: string;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled(ADMIN));
  const [row] = await rows<{ org_id: string }>(
    app.dataSource,
    'SELECT org_id FROM users WHERE email = $1',
    [ADMIN],
  );
  orgId = row?.org_id ?? '';
  await member('bob@search.example', 'Bob Lovelace', { keys: [] });
  await member('cleo@search.example', 'Cleo de Nile', { keys: [FIPS], usedDaysAgo: 100 });
  await member('dora@search.example', 'Dora Maar', { keys: [null, FIPS], usedDaysAgo: 10 });
  await member('emil@search.example', 'Émile Noether', { keys: [null], active: false });
  await member(null, 'Ferdinand Nobody', { keys: [] });
});
afterAll(() => app.close());

interface Facts {
  readonly keys: readonly (string | null)[];
  readonly usedDaysAgo?: number;
  readonly active?: boolean;
}

/** Inserts a member with keys of some models, like rows of real enrollments. */
async function member(email: string | null, name: string, facts: Facts): Promise<void> {
  const id = randomUUID();
  await rows(
    app.dataSource,
    'INSERT INTO users (id, org_id, email, name, active) VALUES ($1, $2, $3, $4, $5)',
    [id, orgId, email, name, facts.active ?? true],
  );
  for (const aaguid of facts.keys) {
    await rows(
      app.dataSource,
      `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, aaguid,
                                   user_verification, name, last_used_at)
       VALUES (gen_random_uuid(), $1, uuid_send(gen_random_uuid()), 'pem', 0, 'packed', $2, true, 'A key',
               now() - make_interval(days => $3))`,
      [id, aaguid, facts.usedDaysAgo ?? null],
    );
  }
}

const namesOf = async (query: string): Promise<string[]> => {
  const answer = await orgApi(ada, 'GET', `/members?sort=address&${query}`);
  expect([query, answer.status]).toEqual([query, 200]);
  return answer.json.members.map(({ email }: { email: string | null }) =>
    email === null ? 'no address' : email.split('@')[0],
  );
};

describe('a search for members', () => {
  it.each([
    ['q=cle', ['cleo']],
    ['q=CLEO%40search', ['cleo']],
    ['q=lovel', ['bob']],
    ['q=cleo%20de%20n', ['cleo']],
    ['q=nile', ['cleo']],
    ['q=ferd', ['no address']],
    [`q=${encodeURIComponent('ÉMILE')}`, ['emil']],
    ['q=%25', []],
    ['q=_', []],
    ["q=' OR 1=1 --", []],
    ['keys=none', ['no address', 'bob']],
    ['keys=one', ['ada', 'cleo', 'emil']],
    ['keys=several', ['dora']],
    ['fips=true', ['cleo', 'dora']],
    ['fips=false', ['ada', 'dora', 'emil']],
    ['model=unknown', ['ada', 'dora', 'emil']],
    ['last_use=never', ['no address', 'bob', 'emil']],
    ['last_use=90', ['no address', 'bob', 'cleo', 'emil']],
    ['last_use=9', ['no address', 'bob', 'cleo', 'dora', 'emil']],
    ['role=admin', ['ada']],
    ['status=inactive', ['emil']],
    ['status=active&role=member&keys=one', ['cleo']],
    ['q=d&fips=true', ['dora']],
  ])('finds by %s those who match, and no others', async (query, expected) => {
    expect((await namesOf(query)).toSorted()).toEqual(expected.toSorted());
  });

  it('names the models of the keys, and finds by such a name', async () => {
    const { members } = (await orgApi(ada, 'GET', '/members?q=cleo')).json;
    const [model] = members[0].key_models as [string];
    expect(model).toContain('FIPS');
    expect(await namesOf(`model=${encodeURIComponent(model)}`)).toEqual(['cleo', 'dora']);
  });

  it.each(['added', 'address', 'last_use'])(
    'pages in the order %s, each member once',
    async (order) => {
      const seen: string[] = [];
      let after = '';
      do {
        const query = `sort=${order}&limit=2${after && `&after=${after}`}`;
        const { members, next } = (await orgApi(ada, 'GET', `/members?${query}`)).json;
        seen.push(...members.map(({ id }: { id: string }) => id));
        after = next as string;
      } while (after);
      expect([seen.length, new Set(seen).size]).toEqual([6, 6]);
      if (order === 'last_use') expect(seen.at(-1)).toBe(await idOf(app, ADMIN));
    },
  );

  const cursorOf = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  it.each([
    'unknown=1',
    'q=',
    `q=${'x'.repeat(255)}`,
    'q=a%00b',
    'keys=two',
    'fips=yes',
    'last_use=0',
    'last_use=99999',
    'model=Nokia',
    'role=root',
    'sort=name',
    'q=a&q=b',
    `after=${cursorOf(['address', 'a', randomUUID()])}`,
    `sort=last_use&after=${cursorOf(['last_use', '2026-13-40', randomUUID()])}`,
    `sort=last_use&after=${cursorOf(['last_use', '2026-02-30', randomUUID()])}`,
    `sort=last_use&after=${cursorOf(['last_use', '0000-01-01', randomUUID()])}`,
    `sort=address&after=${cursorOf(['address', 'a\u0000', randomUUID()])}`,
    'after=W10',
  ])('refuses %s', async (query) => {
    const answer = await orgApi(ada, 'GET', `/members?${query}`);
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });

  it('finds no member of another organization', async () => {
    const { client: eve } = await app.enrolled('eve@other-search.example');
    expect((await orgApi(eve, 'GET', '/members?q=cleo')).json.members).toEqual([]);
    expect((await orgApi(eve, 'GET', '/members?fips=true')).json.members).toEqual([]);
  });
});

describe('10,000 members', () => {
  beforeAll(async () => {
    for (let from = 1; from <= 10_000; from += 2000) {
      await rows(
        app.dataSource,
        `INSERT INTO users (id, org_id, email, name)
         SELECT gen_random_uuid(), $1, 'crowd' || n || '@search.example', 'Crowd Member' || n
         FROM generate_series($2::int, $2::int + 1999) n`,
        [orgId, from],
      );
      await rows(
        app.dataSource,
        `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation,
                                     user_verification, name, last_used_at)
         SELECT gen_random_uuid(), u.id, uuid_send(gen_random_uuid()), 'pem', 0, 'packed', true, 'A key', now()
         FROM users u WHERE u.email LIKE 'crowd%' AND u.key_count = 0 AND u.email NOT LIKE 'crowd9%'`,
      );
    }
    await rows(app.dataSource, 'ANALYZE users, authenticators');
  });

  it.each([
    {},
    { sort: 'address' },
    { sort: 'last_use' },
    { q: 'crowd' },
    { q: 'member7' },
    { keys: 'none', sort: 'address' },
    { keys: 'one', sort: 'address' },
    { role: 'admin', sort: 'address' },
    { status: 'inactive', sort: 'address' },
    { fips: 'true', sort: 'address' },
    { last_use: '30', sort: 'last_use' },
    { last_use: 'never', sort: 'address' },
  ])('need no scan of the table for %j, and few rows are read', async (query) => {
    const runner = app.dataSource.createQueryRunner();
    const ask = runner.query.bind(runner);
    const plans: string[] = [];
    // Before each statement of the service, the plan of the same statement is recorded.
    runner.query = async (text: string, values?: unknown[], structured?: boolean) => {
      const [plan] = (await ask(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, values)) as [
        { 'QUERY PLAN': unknown },
      ];
      plans.push(JSON.stringify(plan['QUERY PLAN']));
      return ask(text, values, structured as true);
    };
    try {
      const { members } = await searchMembers(runner.manager, orgId, MEMBER_QUERY.parse(query));
      expect(members.length).toBeGreaterThan(0);
    } finally {
      await runner.release();
    }
    expect(plans).toHaveLength(1);
    expect(plans[0]).not.toMatch(/"Seq Scan"[^}]*"Relation Name":"(?:users|authenticators)"/);
    const [buffers] = /"Shared Hit Blocks":(\d+)/.exec(plans[0] ?? '')?.slice(1) ?? [];
    expect(Number(buffers)).toBeLessThan(12_000);
  });

  it('says that a text matches more than it looks at, and which page shows them all', async () => {
    expect((await orgApi(ada, 'GET', '/members?q=crowd')).json.complete).toBe(false);
    expect((await orgApi(ada, 'GET', '/members?q=crowd9')).json.complete).toBe(false);
    expect((await orgApi(ada, 'GET', '/members?q=crowd9999')).json).toMatchObject({
      complete: true,
      next: null,
    });
    const filtered = await orgApi(ada, 'GET', '/members?q=crowd&role=admin');
    expect(filtered.json).toMatchObject({ members: [], complete: false });
  });
});
