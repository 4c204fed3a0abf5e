import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AccessEndings } from '../../../src/domain/access-revocation/ended-reach/access-endings.service.js';
import { AccessRules } from '../../../src/domain/admin/access-rules/access-rules.service.js';
import type { Admin } from '../../../src/domain/directory/users.repository.js';
import {
  accessApi,
  addGroup,
  addHostGroup,
  addRole,
  linkInstallation,
  putRule,
  touchAgo,
} from '../../support/access-api.js';
import { addApplication } from '../../support/applications.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';
import { addMember, idOf, orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../../support/scim-organization.js';

let app: TestApp;
let own: ScimOrganization;
let admin: Client;
let by: Admin;
let rules: AccessRules;
/** The ids of members by their name, and the id of a group of `bob` and `carol`. */
const people: Record<string, string> = {};
let staff: string;
beforeAll(async () => {
  app = await startTestApp();
  own = await foundOrganization(app, 'who.example');
  await foundOrganization(app, 'stranger-who.example');
  admin = own.admin.client;
  for (const name of ['ada', 'bob', 'carol']) {
    people[name] = await addMember(app, 'admin@who.example', `${name}@who.example`);
  }
  staff = await addGroup(own, 'Secret staff', [people['bob'] ?? '', people['carol'] ?? '']);
  rules = app.nest.get(AccessRules, { strict: false });
  const [row] = await rows<Admin>(
    app.dataSource,
    `SELECT u.id, u.org_id AS "orgId", s.id AS "sessionId" FROM users u JOIN sessions s ON s.user_id = u.id
     WHERE u.email = 'admin@who.example' AND s.level = 'verified'`,
  );
  if (!row) throw new Error('no admin');
  by = row;
});
afterAll(() => app.close());

const idIn = (path: string) => path.split('/')[2] ?? '';
const kindIn = (path: string) => path.split('/')[1] ?? '';

async function checkOf(path: string, user = '') {
  const query = `user=${people[user]}&kind=${kindIn(path)}&id=${idIn(path)}`;
  return (await accessApi(admin, 'GET', `/check?${query}`)).json as object;
}

describe('the question who reaches a target, and why', () => {
  it('names the kind of rule, for each kind of target, and never a group', async () => {
    const { clientId } = await addApplication(app, {}, { owner: 'admin@who.example' });
    await linkInstallation(app, 'admin@who.example', 815, 'who-inc');
    const paths = [
      `/application/${clientId}`,
      '/github_installation/815',
      await addRole(admin, 'arn:aws:iam::123456789012:role/why'),
      await addHostGroup(admin, 'why'),
    ];
    for (const path of paths) {
      expect(await checkOf(path, 'ada')).toEqual({ allowed: true, because: 'everyone' });
      await putRule(admin, path, { assignments: [{ user: people['ada'] }, { group: staff }] });
      expect(await checkOf(path, 'ada')).toEqual({ allowed: true, because: 'person' });
      expect(await checkOf(path, 'bob')).toEqual({ allowed: true, because: 'group' });
      await putRule(admin, path, { assignments: [{ user: people['ada'] }] });
      expect(await checkOf(path, 'bob')).toEqual({ allowed: false, because: 'not_assigned' });
    }
  });

  it('is answered for an inactive member, and without groups if these are switched off', async () => {
    const path = await addHostGroup(admin, 'off');
    await putRule(admin, path, { assignments: [{ group: staff }] });
    await app.dataSource.query('UPDATE users SET active = false WHERE id = $1', [people['bob']]);
    await app.dataSource.query('UPDATE deployment SET access_by_groups = false');
    const answers = [await checkOf(path, 'bob'), await checkOf(path, 'carol')];
    const listed = await accessApi(admin, 'GET', `${path}/people`);
    await app.dataSource.query('UPDATE deployment SET access_by_groups = true');
    await app.dataSource.query('UPDATE users SET active = true WHERE id = $1', [people['bob']]);
    expect(answers).toEqual([
      { allowed: false, because: 'inactive' },
      { allowed: false, because: 'not_assigned' },
    ]);
    expect(listed.json).toEqual({ count: 0, people: [], next: null });
  });

  it('refuses a query with an unknown or a missing parameter', async () => {
    for (const query of ['', '?user=x', '?user=x&kind=y&id=z&more=1']) {
      expect((await accessApi(admin, 'GET', `/check${query}`)).status).toBe(400);
    }
  });
});

describe('the list of people whom a target admits', () => {
  it('shows people and not through what, part by part', async () => {
    const path = await addHostGroup(admin, 'parts');
    await putRule(admin, path, { assignments: [{ user: people['ada'] }, { group: staff }] });
    const first = await accessApi(admin, 'GET', `${path}/people?limit=2`);
    expect([first.status, first.json.count, first.json.people.length]).toEqual([200, 3, 2]);
    const rest = await accessApi(admin, 'GET', `${path}/people?limit=2&after=${first.json.next}`);
    const all = [...first.json.people, ...rest.json.people] as object[];
    expect([all.length, rest.json.next]).toEqual([3, null]);
    expect(Object.keys(all[0] ?? {})).toEqual(['id', 'email', 'name']);
    const ids = all.map((person) => (person as { id: string }).id);
    expect(ids).toEqual(Object.values(people).toSorted());
  });

  it('that one group alone makes is a number, and has names only after a touch', async () => {
    const path = await addHostGroup(admin, 'alone');
    await putRule(admin, path, { assignments: [{ group: staff }] });
    const mixed = await addHostGroup(admin, 'mixed');
    await putRule(admin, mixed, { assignments: [{ user: people['ada'] }, { group: staff }] });
    expect((await accessApi(admin, 'GET', `${path}/people`)).json.people).toHaveLength(2);
    await touchAgo(app, 'admin@who.example', 301);
    const answers = [
      await accessApi(admin, 'GET', `${path}/people`),
      await accessApi(admin, 'GET', `${mixed}/people`),
    ];
    await admin.logIn(own.admin.key);
    by = { ...by, ...(await sessionOfAdmin()) };
    expect(answers.map(({ json }) => json as object)).toEqual([
      { count: 2, people: null, next: null },
      { count: 3, people: null, next: null },
    ]);
  });
});

async function sessionOfAdmin() {
  const [row] = await rows<{ sessionId: string }>(
    app.dataSource,
    `SELECT id AS "sessionId" FROM sessions WHERE user_id = $1 AND level = 'verified' ORDER BY created_at DESC LIMIT 1`,
    [by.id],
  );
  return row;
}

describe('the list of targets', () => {
  it('comes by kind and name, part by part, filtered by kind and by a part of the name', async () => {
    for (const name of ['list-c', 'list-a', 'list-b']) await addHostGroup(admin, name);
    await addRole(admin, 'arn:aws:iam::123456789012:role/list-role', 'z-role');
    const names: string[] = [];
    for (let next: string | null = ''; next !== null;) {
      const after: string = next === '' ? '' : `&after=${next}`;
      const page = await accessApi(admin, 'GET', `?q=LIST-&limit=2${after}`);
      expect(page.status).toBe(200);
      names.push(...(page.json.targets as { name: string }[]).map(({ name }) => name));
      next = page.json.next as string | null;
    }
    expect(names).toEqual(['z-role', 'list-a', 'list-b', 'list-c']);
    const roles = await accessApi(admin, 'GET', '?q=list-&kind=aws_role');
    expect((roles.json.targets as object[]).length).toBe(1);
  });

  it.each(['?kind=kubernetes', '?limit=0', '?limit=201', '?after=x', '?q=', '?more=1'])(
    'refuses the query %s',
    async (query) => {
      expect((await accessApi(admin, 'GET', query)).status).toBe(400);
    },
  );

  it('has the reach of one person with its reason, also only what is reached', async () => {
    const closed = await addHostGroup(admin, 'reach-closed');
    const opened = await addHostGroup(admin, 'reach-open');
    await putRule(admin, closed, { assignments: [{ group: staff }] });
    const query = { q: 'reach-', limit: 100 };
    const reachOf = async (name: string, onlyReached: boolean) =>
      (await rules.reachOf(by, people[name] ?? '', query, { onlyReached })).reached.map(
        ({ target, decision }) => [target.id, decision.because],
      );
    const [closedId, openId] = [idIn(closed), idIn(opened)];
    expect(await reachOf('ada', false)).toEqual([
      [closedId, 'not_assigned'],
      [openId, 'everyone'],
    ]);
    expect(await reachOf('ada', true)).toEqual([[openId, 'everyone']]);
    expect(await reachOf('bob', true)).toEqual([
      [closedId, 'group'],
      [openId, 'everyone'],
    ]);
    const foreign = await idOf(app, 'admin@stranger-who.example');
    await expect(rules.reachOf(by, foreign, query, { onlyReached: true })).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});

describe('the forecast of a change', () => {
  it('says who gains, who loses, and what cannot be recalled, and changes nothing', async () => {
    const path = await addHostGroup(admin, 'forecast');
    await putRule(admin, path, { assignments: [{ user: people['ada'] }] });
    const wanted = { access: 'assigned', conditions: {}, assignments: [{ group: staff }] };
    const version = (await accessApi(admin, 'GET', path)).headers.get('etag');
    const { status, json } = await accessApi(admin, 'POST', `${path}/preview`, wanted);
    expect([status, json.gains.count, json.loses]).toEqual([
      200,
      2,
      { count: 1, people: [{ id: people['ada'], email: 'ada@who.example', name: null }] },
    ]);
    const gained = (json.gains.people as { email: string }[]).map(({ email }) => email);
    expect(gained.toSorted()).toEqual(['bob@who.example', 'carol@who.example']);
    expect(json.not_recalled).toEqual([{ what: 'ssh_connection', seconds: null }]);
    expect((await accessApi(admin, 'GET', path)).headers.get('etag')).toBe(version);
    const everyone = { access: 'everyone', conditions: {}, assignments: [] };
    const opened = (await accessApi(admin, 'POST', `${path}/preview`, everyone)).json;
    expect([opened.gains.count, opened.loses.count, opened.not_recalled]).toEqual([3, 0, []]);
  });

  it.each<[string, { touch_within_seconds?: number; models?: string }, string[]]>([
    ['a longer age of the touch', { touch_within_seconds: 3600 }, []],
    ['no condition any more', {}, []],
    ['a shorter age of the touch', { touch_within_seconds: 30 }, ['condition']],
    ['another condition', { touch_within_seconds: 3600, models: 'fips-only' }, ['condition']],
  ])(
    'and the change itself end something only if a condition asks for more: %s',
    async (what, conditions, ends) => {
      const path = await addHostGroup(
        admin,
        `looser-${ends.length}-${Object.keys(conditions).length}`,
      );
      await putRule(admin, path, { access: 'everyone', conditions: { touch_within_seconds: 60 } });
      await rows(app.dataSource, 'DELETE FROM access_endings');
      const change = { access: 'everyone', conditions, assignments: [] };
      const forecast = await accessApi(admin, 'POST', `${path}/preview`, change);
      expect(forecast.json.not_recalled.length > 0, what).toBe(ends.length > 0);
      const queued = await app.dataSource.transaction(async (tx) => {
        await tx.query(
          'UPDATE access_targets SET touch_within_seconds = $2, models = $3 WHERE id = $1',
          [idIn(path), conditions.touch_within_seconds ?? null, conditions.models ?? null],
        );
        return tx.query<{ rule: string }[]>('SELECT rule FROM access_endings');
      });
      expect(queued.map(({ rule }) => rule)).toEqual(ends);
    },
  );

  it('without a touch is hidden, if a group takes part', async () => {
    const path = await addHostGroup(admin, 'numbers');
    const ref = { kind: 'host_group', id: idIn(path) } as const;
    const none = { touchWithinSeconds: null, models: null, userVerification: null };
    const change = { access: 'assigned', conditions: none, users: [], groups: [staff] } as const;
    const preview = await rules.preview(by, ref, change, { mayName: false });
    expect(preview).toEqual({ hidden: true });
  });

  it('of a deleted role says that everyone gains it, unless roles are listed', async () => {
    const path = await addRole(admin, 'arn:aws:iam::123456789012:role/deleted');
    await putRule(admin, path, { assignments: [{ user: people['ada'] }] });
    const ask = async () =>
      (await accessApi(admin, 'POST', `${path}/preview`, { deleted: true })).json;
    const free = await ask();
    expect([free.gains.count, free.loses.count]).toEqual([3, 0]);
    await orgApi(admin, 'PATCH', '', { aws_roles: 'listed' });
    const listed = await ask();
    await orgApi(admin, 'PATCH', '', { aws_roles: 'any' });
    expect([listed.gains.count, listed.loses.count]).toEqual([0, 1]);
    expect(listed.not_recalled).toEqual([
      { what: 'aws_token', seconds: 300 },
      { what: 'aws_session', seconds: null },
    ]);
  });

  it('counts what people hold who lose a target, and whose touch does not meet a new condition', async () => {
    await linkInstallation(app, 'admin@who.example', 816, 'counted');
    await rows(
      app.dataSource,
      `INSERT INTO github_tokens (id, installation_id, owner, user_id, org_id, session_id, sealed, permissions, expires_at)
       SELECT gen_random_uuid(), 816, 'counted', u.id, u.org_id, s.id, 'x', '{}', now() + interval '1 hour'
       FROM users u JOIN sessions s ON s.user_id = u.id WHERE u.id = $1 ORDER BY s.created_at DESC LIMIT 1`,
      [by.id],
    );
    const path = '/github_installation/816';
    const endsBy = async (rule: object) =>
      (
        await accessApi(admin, 'POST', `${path}/preview`, {
          conditions: {},
          assignments: [],
          ...rule,
        })
      ).json.ends as object;
    expect(await endsBy({ access: 'assigned' })).toEqual({ github_tokens: 1 });
    const keeps = { access: 'assigned', assignments: [{ user: by.id }] };
    expect(await endsBy(keeps)).toEqual({ github_tokens: 0 });
    const fips = { conditions: { models: 'fips-only' } };
    expect(await endsBy({ ...keeps, ...fips })).toEqual({ github_tokens: 1 });
    const soon = { conditions: { touch_within_seconds: 3600 } };
    expect(await endsBy({ ...keeps, ...soon })).toEqual({ github_tokens: 0 });
    expect(await endsBy({ access: 'assigned', ...fips })).toEqual({ github_tokens: 1 });
  });

  it('of an application counts the sign-ins of people of other organizations, whom the rule for everyone admits', async () => {
    const { clientId } = await addApplication(app, {}, { owner: 'admin@who.example' });
    await rows(
      app.dataSource,
      `INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, expires_at)
       SELECT uuid_send(u.id), $1, u.id, s.id, '{}', now() + interval '1 hour'
       FROM users u JOIN sessions s ON s.user_id = u.id AND s.level = 'verified'
       WHERE u.email IN ('admin@who.example', 'admin@stranger-who.example')`,
      [clientId],
    );
    const path = `/application/${clientId}`;
    const everybody = [...Object.values(people), by.id].map((user) => ({ user }));
    const ask = async (rule: object) =>
      (await accessApi(admin, 'POST', `${path}/preview`, { conditions: {}, ...rule })).json;
    const closed = await ask({ access: 'assigned', assignments: everybody });
    expect([closed.loses, closed.ends]).toEqual([{ count: 0, people: [] }, { grants: 1 }]);
    expect(closed.not_recalled).toEqual([{ what: 'jwt', seconds: 300 }]);
    const conditions = { models: 'fips-only' };
    const both = await ask({ access: 'assigned', assignments: everybody, conditions });
    expect(both.ends).toEqual({ grants: 2 });
    const same = await ask({ access: 'everyone', assignments: [] });
    expect([same.ends, same.not_recalled]).toEqual([{}, []]);
  });

  it('says what cannot be recalled if the sign-ins are too many to count', async () => {
    const { clientId } = await addApplication(app, {}, { owner: 'admin@who.example' });
    const assignments = [...Object.values(people), by.id].map((user) => ({ user }));
    const rule = { access: 'assigned', conditions: {}, assignments };
    const counting = vi.spyOn(app.nest.get(AccessEndings, { strict: false }), 'countHeld');
    try {
      counting.mockResolvedValue(undefined);
      const { json } = await accessApi(admin, 'POST', `/application/${clientId}/preview`, rule);
      expect([json.loses.count, json.ends]).toEqual([0, null]);
      expect(json.not_recalled).toEqual([{ what: 'jwt', seconds: 300 }]);
    } finally {
      counting.mockRestore();
    }
  });
});

describe('the export of who can reach what', () => {
  it('has a line for each person of each target, and no group', async () => {
    const path = await addHostGroup(admin, 'export-me');
    const conditions = { touch_within_seconds: 900, user_verification: 'required' };
    await putRule(admin, path, {
      conditions,
      assignments: [{ user: people['ada'] }, { group: staff }],
    });
    await addHostGroup(admin, 'export-open');
    const none = await addHostGroup(admin, 'export-none');
    await putRule(admin, none, {});
    await addApplication(app, { client_name: '=cmd|calc' }, { owner: 'admin@who.example' });
    const file = await accessApi(admin, 'GET', '/export');
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'text/csv']);
    const lines = file.text.split('\r\n');
    const of = (name: string) => lines.filter((line) => line.includes(`"${name}"`));
    const endOf = (line: string) => line.split(',').slice(-2).join();
    expect(of('export-me').map(endOf)).toEqual(
      ['ada', 'bob', 'carol']
        .toSorted((one, other) => ((people[one] ?? '') < (people[other] ?? '') ? -1 : 1))
        .map((name) => `"${name}@who.example","${people[name]}"`),
    );
    expect(lines[0]).toBe(
      'kind,target,target_id,role_arn,hosts,logins,access,conditions,person,person_id',
    );
    expect(of('export-me')[0]).toContain('"touch within 900 seconds, user verification"');
    for (const name of ['export-open', 'export-none']) {
      expect(of(name).map(endOf), name).toEqual(['"",""']);
    }
    expect(of('export-open')[0]).toContain('"everyone"');
    expect(file.text).toContain(`"'=cmd|calc"`);
    expect(file.text).not.toContain('Secret staff');
    expect(file.text).not.toContain(staff);
  });

  it('reads many people in batches, each once', async () => {
    const path = await addHostGroup(admin, 'crowd');
    await rows(
      app.dataSource,
      `WITH made AS (INSERT INTO users (id, org_id, email, scim_managed)
         SELECT gen_random_uuid(), $1, 'crowd-' || n || '@who.example', true FROM generate_series(1, 1203) n RETURNING id)
       INSERT INTO group_members (group_id, user_id) SELECT $2, id FROM made`,
      [by.orgId, staff],
    );
    await putRule(admin, path, { assignments: [{ group: staff }, { user: people['bob'] }] });
    const { text } = await accessApi(admin, 'GET', '/export');
    const ids = text
      .split('\r\n')
      .filter((line) => line.includes('"crowd"'))
      .map((line) => line.split(',').at(-1));
    expect([ids.length, new Set(ids).size]).toEqual([1205, 1205]);
    const listed = await accessApi(admin, 'GET', `${path}/people`);
    expect(listed.json.count).toBe(1205);
  });
});
