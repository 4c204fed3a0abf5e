import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
import { newAddress, type Client } from '../../support/client.js';
import { addMember, idOf, orgApi } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../../support/scim-organization.js';

const ROLE = 'arn:aws:iam::123456789012:role/deploy';

let app: TestApp;
let own: ScimOrganization;
let admin: Client;
let foreign: ScimOrganization;
/** The ids of members of the organization, and of a user of another organization. */
let ada: string;
let bob: string;
let carol: string;
let stranger: string;
beforeAll(async () => {
  app = await startTestApp();
  own = await foundOrganization(app, 'reach.example');
  admin = own.admin.client;
  foreign = await foundOrganization(app, 'other-reach.example');
  [ada, bob, carol] = (await Promise.all(
    ['ada', 'bob', 'carol'].map((name) =>
      addMember(app, 'admin@reach.example', `${name}@reach.example`),
    ),
  )) as [string, string, string];
  stranger = await idOf(app, 'admin@other-reach.example');
});
afterAll(() => app.close());

interface RuleEvent {
  readonly details: Readonly<Record<string, unknown>>;
  readonly actor_email: string;
}

const ruleEvents = () =>
  rows<RuleEvent>(
    app.dataSource,
    `SELECT details, actor_email FROM audit_events
     WHERE type = 'access_rule_changed' AND org_id = (SELECT org_id FROM users WHERE id = $1) ORDER BY id`,
    [ada],
  );

describe('a role of AWS and a group of hosts', () => {
  it('are made, read, changed and deleted, each with its version and an event', async () => {
    const made = await accessApi(admin, 'POST', '/aws_role', {
      role_arn: `${ROLE}-cycle`,
      name: 'cycle',
      region: 'eu-central-1',
    });
    expect([made.status, made.json, made.headers.get('etag')]).toEqual([
      201,
      {
        kind: 'aws_role',
        id: expect.any(String),
        name: 'cycle',
        role_arn: `${ROLE}-cycle`,
        region: 'eu-central-1',
        access: 'everyone',
        conditions: {},
        assigned: { users: 0, groups: 0 },
        version: '1',
        updated_at: expect.any(String),
      },
      '"1"',
    ]);
    const path = `/aws_role/${made.json.id}`;
    const shown = await accessApi(admin, 'GET', path);
    expect(shown.json).toEqual({ ...made.json, assignments: [] });
    const changed = await accessApi(admin, 'PATCH', path, { name: 'wheel', region: null }, '"1"');
    expect([changed.status, changed.json.name, changed.json.region, changed.json.version]).toEqual([
      200,
      'wheel',
      null,
      '2',
    ]);
    expect((await accessApi(admin, 'DELETE', path, undefined, '"2"')).status).toBe(204);
    expect((await accessApi(admin, 'GET', path)).status).toBe(404);
    const target = { kind: 'aws_role', id: made.json.id as string };
    expect((await ruleEvents()).slice(-3)).toEqual(
      [
        { target: { ...target, name: 'cycle' }, change: 'created', rule: { access: 'everyone' } },
        {
          target: { ...target, name: 'wheel' },
          change: 'changed',
          changed: {
            name: { from: 'cycle', to: 'wheel' },
            region: { from: 'eu-central-1', to: null },
          },
        },
        { target: { ...target, name: 'wheel' }, change: 'deleted', rule: { access: 'everyone' } },
      ].map((details) => ({ details, actor_email: 'admin@reach.example' })),
    );
  });

  it('a group of hosts that takes the rule of an earlier name is recorded with both rules', async () => {
    const made = async (name: string) => {
      const body = { name, hosts: ['*.kept.example'], logins: ['deploy'] };
      return (await accessApi(admin, 'POST', '/host_group', body)).json.id as string;
    };
    const closed = `/host_group/${await made('closed')}`;
    await putRule(admin, closed, { conditions: { touch_within_seconds: 900 } });
    const { headers } = await accessApi(admin, 'GET', closed);
    await accessApi(admin, 'DELETE', closed, undefined, headers.get('etag') ?? '');
    const path = `/host_group/${await made('free')}`;
    const renamed = await accessApi(admin, 'PATCH', path, { name: 'closed' }, '"1"');
    expect([renamed.status, renamed.json.access]).toEqual([200, 'assigned']);
    expect((await ruleEvents()).at(-1)).toMatchObject({
      details: {
        change: 'changed',
        changed: { name: { from: 'free', to: 'closed' } },
        rule: { access: 'assigned', touch_within_seconds: 900 },
        earlier_rule: { access: 'everyone' },
      },
    });
    await accessApi(admin, 'DELETE', path, undefined, renamed.headers.get('etag') ?? '');
  });

  it('a group of hosts has its patterns and logins each once', async () => {
    const body = { name: 'twice', hosts: ['*.a.example', '*.a.example'], logins: ['x', 'x'] };
    const made = await accessApi(admin, 'POST', '/host_group', body);
    expect([made.status, made.json.hosts, made.json.logins]).toEqual([201, ['*.a.example'], ['x']]);
    const path = `/host_group/${made.json.id}`;
    const changed = await accessApi(admin, 'PATCH', path, { logins: ['y', 'z'] }, '"1"');
    expect([changed.status, changed.json.logins, changed.json.hosts]).toEqual([
      200,
      ['y', 'z'],
      ['*.a.example'],
    ]);
  });

  const many = (text: string) => Array.from({ length: 101 }, (_, n) => `${text}${n}`);
  const group = { name: 'g', hosts: ['h.example'], logins: ['deploy'] };
  it.each<readonly [string, object]>([
    ['/aws_role', { role_arn: 'arn:aws:iam::1:role/x', name: 'x' }],
    ['/aws_role', { role_arn: ROLE, name: 'Upper' }],
    ['/aws_role', { role_arn: ROLE, name: 'x', region: 'EU' }],
    ['/aws_role', { role_arn: ROLE, name: 'x', access: 'assigned' }],
    ['/aws_role', { name: 'x' }],
    ['/host_group', { ...group, name: '' }],
    ['/host_group', { ...group, name: '1st' }],
    ['/host_group', { ...group, name: 'a:b' }],
    ['/host_group', { ...group, name: 'n'.repeat(33) }],
    ['/host_group', { ...group, hosts: [] }],
    ['/host_group', { ...group, hosts: ['two words'] }],
    ['/host_group', { ...group, hosts: ['a,b'] }],
    ['/host_group', { ...group, hosts: ['$(id)'] }],
    ['/host_group', { ...group, hosts: ["a'b"] }],
    ['/host_group', { ...group, hosts: ['%h'] }],
    ['/host_group', { ...group, hosts: ['h'.repeat(255)] }],
    ['/host_group', { ...group, hosts: many('h') }],
    ['/host_group', { ...group, logins: [] }],
    ['/host_group', { ...group, logins: ['root*'] }],
    ['/host_group', { ...group, logins: ['a@b'] }],
    ['/host_group', { ...group, logins: ['Root'] }],
    ['/host_group', { ...group, logins: many('l') }],
    ['/host_group', { ...group, unknown: true }],
  ])('POST %s refuses %j', async (path, body) => {
    const answer = await accessApi(admin, 'POST', path, body);
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });

  it('of 20 at once with one name or one role one is made, and the others are told', async () => {
    const body = { name: 'racing', hosts: ['*.racing.example'], logins: ['deploy'] };
    const groups = await Promise.all(
      Array.from({ length: 20 }, () => accessApi(admin, 'POST', '/host_group', body)),
    );
    const roles = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        accessApi(admin, 'POST', '/aws_role', { role_arn: `${ROLE}-racing`, name: `r${n}` }),
      ),
    );
    for (const answers of [groups, roles]) {
      expect(answers.map(({ status }) => status).toSorted()).toEqual([
        201,
        ...Array.from({ length: 19 }, () => 409),
      ]);
      expect(answers.find(({ status }) => status === 409)?.json.code).toBe('uniqueness');
    }
    const path = await addHostGroup(admin, 'second');
    const renamed = await accessApi(admin, 'PATCH', path, { name: 'racing' }, '"1"');
    expect([renamed.status, renamed.json.code]).toEqual([409, 'uniqueness']);
  });

  it('a group of hosts that is made again under the name of one with a rule begins with the rule', async () => {
    const ruleOf = async (path: string) => {
      const { access, conditions, assignments } = (await accessApi(admin, 'GET', path)).json;
      return { access, conditions, assignments };
    };
    const remove = async (path: string) => {
      const tag = (await accessApi(admin, 'GET', path)).headers.get('etag') ?? '';
      expect((await accessApi(admin, 'DELETE', path, undefined, tag)).status).toBe(204);
    };
    const rename = async (path: string, name: string) => {
      const tag = (await accessApi(admin, 'GET', path)).headers.get('etag') ?? '';
      expect((await accessApi(admin, 'PATCH', path, { name }, tag)).status).toBe(200);
    };
    const open = { access: 'everyone', conditions: {}, assignments: [] };
    const closed = { access: 'assigned', conditions: { user_verification: 'required' } };
    const toNoOne = { ...closed, assignments: [] };

    const first = await addHostGroup(admin, 'remade');
    await putRule(admin, first, { ...closed, assignments: [{ user: bob }] } as never);
    await remove(first);
    const foreignPath = await addHostGroup(foreign.admin.client, 'remade');
    const ofForeign = await accessApi(foreign.admin.client, 'GET', foreignPath);
    expect(ofForeign.json).toMatchObject(open);
    const second = await addHostGroup(admin, 'remade');
    expect(await ruleOf(second)).toEqual(toNoOne);

    // A group that is renamed takes its rule along, and a copy is kept for its old name. The next
    // group that gets this name gets the copy.
    await rename(second, 'remade-later');
    expect(await ruleOf(second)).toEqual(toNoOne);
    const other = await addHostGroup(admin, 'another-of-hosts');
    await rename(other, 'remade');
    expect(await ruleOf(other)).toEqual(toNoOne);

    // An open rule leaves no copy for the name.
    await putRule(admin, other, { access: 'everyone' });
    await remove(other);
    expect(await ruleOf(await addHostGroup(admin, 'remade'))).toEqual(open);
  });

  it('two organizations have a group of the same name and the same role', async () => {
    const ids = [
      await addHostGroup(admin, 'shared'),
      await addRole(admin, `${ROLE}-shared`),
      await addHostGroup(foreign.admin.client, 'shared'),
      await addRole(foreign.admin.client, `${ROLE}-shared`),
    ];
    expect(new Set(ids).size).toBe(4);
  });

  it('an application and an installation cannot be deleted as targets', async () => {
    const { clientId } = await addApplication(app, {}, { owner: 'admin@reach.example' });
    const answer = await accessApi(admin, 'DELETE', `/application/${clientId}`, undefined, '"1"');
    expect(answer.status).toBe(405);
  });
});

describe('the rule of a target', () => {
  it('is replaced as a whole, for each kind, and the event names what was assigned and removed', async () => {
    const { clientId } = await addApplication(
      app,
      { client_name: 'Wiki' },
      { owner: 'admin@reach.example' },
    );
    await linkInstallation(app, 'admin@reach.example', 4711, 'reach-inc');
    const staff = await addGroup(own, 'Staff', [bob]);
    const paths = [
      `/application/${clientId}`,
      '/github_installation/4711',
      await addRole(admin, `${ROLE}-kinds`),
      await addHostGroup(admin, 'kinds'),
    ];
    const conditions = {
      touch_within_seconds: 900,
      models: 'fips-only',
      user_verification: 'required',
    };
    for (const path of paths) {
      const first = await putRule(admin, path, { conditions, assignments: [{ user: ada }] });
      expect([first.status, first.json.access, first.json.conditions]).toEqual([
        200,
        'assigned',
        conditions,
      ]);
      const second = await putRule(admin, path, {
        assignments: [{ user: carol }, { group: staff }, { user: carol }],
      });
      expect(second.json.assignments).toEqual([{ user: carol }, { group: staff }]);
      expect(second.json.conditions).toEqual({});
      const [event] = (await ruleEvents()).slice(-1);
      expect(event?.details).toMatchObject({
        change: 'rule',
        target: { id: path.split('/')[2] },
        rule: { access: 'assigned' },
        earlier_rule: { access: 'assigned', ...conditions },
        removed: [{ user: ada, email: 'ada@reach.example' }],
      });
      expect(event?.details['assigned']).toHaveLength(2);
      expect(event?.details['assigned']).toContainEqual({
        user: carol,
        email: 'carol@reach.example',
      });
      expect(event?.details['assigned']).toContainEqual({ group: staff });
      expect(JSON.stringify(event)).not.toContain('Staff');
    }
  });

  it('that is put again changes nothing, and writes no event', async () => {
    const path = await addHostGroup(admin, 'again');
    await putRule(admin, path, { assignments: [{ user: ada }] });
    const before = (await ruleEvents()).length;
    expect((await putRule(admin, path, { assignments: [{ user: ada }] })).status).toBe(200);
    expect((await ruleEvents()).length).toBe(before);
  });

  it('of AWS demands If-Match too, and a group of hosts is deleted by its version', async () => {
    const role = await addRole(admin, `${ROLE}-tagged`, 'tagged');
    for (const method of ['PATCH', 'DELETE']) {
      const body = method === 'PATCH' ? { name: 'renamed' } : undefined;
      expect((await accessApi(admin, method, role, body)).status).toBe(428);
      expect((await accessApi(admin, method, role, body, '"99"')).status).toBe(412);
    }
    const group = await addHostGroup(admin, 'tagged');
    const tag = (await accessApi(admin, 'GET', group)).headers.get('etag') ?? undefined;
    expect((await accessApi(admin, 'DELETE', group, undefined, tag)).status).toBe(204);
    expect((await accessApi(admin, 'GET', group)).status).toBe(404);
  });

  it('demands If-Match with the present version: 428 without, 412 for a stale one', async () => {
    const path = await addHostGroup(admin, 'versions');
    const rule = { access: 'assigned', conditions: {}, assignments: [] };
    const without = await accessApi(admin, 'PUT', path, rule);
    expect([without.status, without.json.code]).toEqual([428, 'precondition_required']);
    expect((await accessApi(admin, 'PUT', path, rule, '"1"')).status).toBe(200);
    const stale = await accessApi(admin, 'PUT', path, rule, '"1"');
    expect([stale.status, stale.json.code]).toEqual([412, 'precondition_failed']);
    expect((await accessApi(admin, 'PATCH', path, { name: 'v' })).status).toBe(428);
    expect((await accessApi(admin, 'PATCH', path, { name: 'v' }, '"1"')).status).toBe(412);
    expect((await accessApi(admin, 'DELETE', path)).status).toBe(428);
    expect((await accessApi(admin, 'DELETE', path, undefined, '"1"')).status).toBe(412);
  });

  it('is not confirmed from a page that shows an earlier version', async () => {
    const path = await addHostGroup(admin, 'stale-page');
    const address = `/admin/access${path}`;
    const form = (await admin.get(address, { address: newAddress() })).text;
    const [, version = ''] = /name="version" value="(\d+)"/.exec(form) ?? [];
    const change = `${address}/change?access=everyone&add_people=ada@reach.example&version=${version}`;
    const pageOf = async () => (await admin.get(change, { address: newAddress() })).text;
    expect(await pageOf()).toContain('data-if-match="&quot;1&quot;"');
    await putRule(admin, path, { assignments: [{ user: bob }] });
    const stale = await pageOf();
    expect(stale).toContain('This target was changed since you opened its page.');
    expect(stale).not.toContain('data-if-match');
  });

  it('of 20 changes of one version at once one is done, and 19 are told that it changed', async () => {
    const path = await addHostGroup(admin, 'contended');
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        const assignments = [{ user: n % 2 === 0 ? ada : bob }];
        const rule = { access: 'assigned', conditions: {}, assignments };
        return accessApi(admin, 'PUT', path, rule, '"1"');
      }),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([
      200,
      ...Array.from({ length: 19 }, () => 412),
    ]);
  });

  it.each<readonly [string, object]>([
    ['no access', { conditions: {}, assignments: [] }],
    ['another access', { access: 'some', conditions: {}, assignments: [] }],
    ['no conditions', { access: 'everyone', assignments: [] }],
    ['an unknown condition', { access: 'everyone', conditions: { ip: 'x' }, assignments: [] }],
    [
      'an age of 0',
      { access: 'everyone', conditions: { touch_within_seconds: 0 }, assignments: [] },
    ],
    [
      'an age of text',
      { access: 'everyone', conditions: { touch_within_seconds: '9' }, assignments: [] },
    ],
    ['other models', { access: 'everyone', conditions: { models: 'any' }, assignments: [] }],
    [
      'an assignment of both',
      {
        access: 'assigned',
        conditions: {},
        assignments: [{ user: randomUUID(), group: randomUUID() }],
      },
    ],
    ['an assignment of nothing', { access: 'assigned', conditions: {}, assignments: [{}] }],
    ['an id that is none', { access: 'assigned', conditions: {}, assignments: [{ user: 'ada' }] }],
    [
      '1,001 assignments',
      {
        access: 'assigned',
        conditions: {},
        assignments: Array.from({ length: 1001 }, () => ({ user: randomUUID() })),
      },
    ],
  ])('with %s is refused', async (_, body) => {
    const path = `/host_group/${randomUUID()}`;
    const answer = await accessApi(admin, 'PUT', path, body, '"1"');
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });

  it('a person, a group and a target of another organization are 404, in each route', async () => {
    const theirs = await addHostGroup(foreign.admin.client, 'theirs');
    const theirGroup = await addGroup(foreign, 'Theirs', []);
    const path = await addHostGroup(admin, 'mine');
    for (const assignments of [[{ user: stranger }], [{ group: theirGroup }], [{ group: ada }]]) {
      const answer = await putRule(admin, path, { assignments });
      expect([answer.status, answer.json.code]).toEqual([404, 'not_found']);
      const rule = { access: 'assigned', conditions: {}, assignments };
      expect((await accessApi(admin, 'POST', `${path}/preview`, rule)).status).toBe(404);
    }
    const rule = { access: 'assigned', conditions: {}, assignments: [] };
    const [, kind, id] = theirs.split('/');
    const answers = await Promise.all([
      accessApi(admin, 'GET', theirs),
      accessApi(admin, 'PUT', theirs, rule, '"1"'),
      accessApi(admin, 'PATCH', theirs, { name: 'stolen' }, '"1"'),
      accessApi(admin, 'DELETE', theirs, undefined, '"1"'),
      accessApi(admin, 'GET', `${theirs}/people`),
      accessApi(admin, 'POST', `${theirs}/preview`, rule),
      accessApi(admin, 'GET', `/check?user=${ada}&kind=${kind}&id=${id}`),
      accessApi(admin, 'GET', `/check?user=${stranger}&kind=host_group&id=${path.split('/')[2]}`),
      accessApi(admin, 'GET', `/check?user=no-id&kind=host_group&id=${path.split('/')[2]}`),
      accessApi(admin, 'GET', '/host_group/no-id'),
      accessApi(admin, 'GET', '/github_installation/4711000'),
      accessApi(admin, 'GET', '/github_installation/99999999999999999999'),
      accessApi(admin, 'GET', '/application/unknown'),
      accessApi(admin, 'GET', `/kubernetes/${ada}`),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 404));
    expect(await count(app.dataSource, 'access_assignments WHERE user_id = $1', [stranger])).toBe(
      0,
    );
  });

  it('is for admins, and needs a touch of the last 5 minutes to change', async () => {
    const path = await addHostGroup(admin, 'guarded');
    await app.enrolled('dave@late-reach.example'); // the first user of an organization is its admin
    const { client: member } = await app.enrolled('erin@late-reach.example');
    expect((await accessApi(member, 'GET', '')).status).toBe(403);
    await touchAgo(app, 'admin@reach.example', 301);
    const rule = { access: 'assigned', conditions: {}, assignments: [] };
    const answers = [
      await accessApi(admin, 'PUT', path, rule, '"1"'),
      await accessApi(admin, 'DELETE', path, undefined, '"1"'),
      await accessApi(admin, 'POST', '/aws_role', { role_arn: ROLE, name: 'x' }),
      await accessApi(admin, 'POST', `${path}/preview`, rule),
      await accessApi(admin, 'GET', '/export'),
    ];
    const read = await accessApi(admin, 'GET', path);
    await admin.logIn(own.admin.key);
    expect(answers.map(({ json }) => json.code as string)).toEqual(
      answers.map(() => 'insufficient_user_authentication'),
    );
    expect(read.status).toBe(200);
  });
});

describe('the mode of roles of AWS', () => {
  it('is a setting of the organization that counts as a change of its roles', async () => {
    const versionOf = async () =>
      (
        await rows<{ v: string }>(
          app.dataSource,
          `SELECT version AS v FROM access_versions WHERE org_id = (SELECT org_id FROM users WHERE id = $1)`,
          [ada],
        )
      )[0]?.v;
    const before = await orgApi(admin, 'GET', '');
    const tag = before.headers.get('etag') ?? '';
    const from = Number(await versionOf());
    const listed = await orgApi(admin, 'PATCH', '', { aws_roles: 'listed' }, { 'if-match': tag });
    expect([listed.status, listed.json.aws_roles]).toEqual([200, 'listed']);
    expect(Number(await versionOf())).toBe(from + 1);
    const stale = await orgApi(admin, 'PATCH', '', { aws_roles: 'any' }, { 'if-match': tag });
    expect(stale.status).toBe(412);
    expect((await orgApi(admin, 'PATCH', '', { aws_roles: 'any' })).json.aws_roles).toBe('any');
    expect((await orgApi(admin, 'PATCH', '', { aws_roles: 'some' })).status).toBe(400);
  });
});
