import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { newAddress, type Answer } from '../../support/client.js';
import { assigned } from '../../support/domains.js';
import { idOf } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';
import { addInstallation, addTarget, assignTo } from '../../support/targets.js';

const ADMIN = 'ada@setup.example';
const MEMBER = 'bob@setup.example';
const STRANGER = 'eve@others.example';
const GROUP = 'Zebra on-call';
const ROLE = 'arn:aws:iam::123456789012:role/engineer';
const EMPTY = { ssh: [], aws: [], kubernetes: [], github: [], applications: [] };

let app: TestApp;
let ada: EnrolledUser;
let bob: EnrolledUser;
let eve: EnrolledUser;
let bobId: string;
const groupId = randomUUID();
const targets = { hosts: '', role: '', owner: '' };

const setupOf = async ({ client }: EnrolledUser) => {
  const answer = await client.send('GET', '/v1/setup', { address: newAddress() });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return answer.json as Record<string, unknown> & { readonly changed_at: string };
};
const register = async (body: object): Promise<Answer> =>
  ada.client.post('/api/v1/applications', body, { address: newAddress() });
const run = (query: string, ...parameters: unknown[]) => rows(app.dataSource, query, parameters);
const WEB = {
  name: 'Grafana',
  type: 'web',
  redirect_uris: ['https://grafana.setup.example/login/callback'],
};

beforeAll(async () => {
  app = await startTestApp();
  ada = await app.enrolled(ADMIN);
  bob = await app.enrolled(MEMBER);
  eve = await app.enrolled(STRANGER);
  bobId = await idOf(app, MEMBER);
  targets.hosts = await addTarget(app.dataSource, ADMIN, {
    name: 'prod',
    hosts: ['*.prod.setup.example'],
    logins: ['deploy', 'ubuntu'],
  });
  targets.role = await addTarget(app.dataSource, ADMIN, {
    name: 'Engineer',
    roleArn: ROLE,
    region: 'eu-central-1',
  });
  targets.owner = await addInstallation(app.dataSource, ADMIN, 'setup-org');
  await assigned(app, ADMIN, 'k8s.setup.example');
  const answers = [
    await register({
      name: 'Production',
      type: 'kubernetes',
      resource: 'https://k8s.setup.example',
    }),
    await register({ ...WEB, initiate_login_uri: 'https://grafana.setup.example/login' }),
    await register({ ...WEB, name: 'Wiki' }),
    await register({ name: 'Nightly job', type: 'service' }),
  ];
  const refused = answers.find(({ status }) => status !== 201);
  if (refused) throw new Error(`an application was not registered: ${refused.text}`);
  await run(
    `INSERT INTO groups (id, org_id, display_name) SELECT $1, org_id, $2 FROM users WHERE id = $3`,
    groupId,
    GROUP,
    bobId,
  );
  await run('INSERT INTO group_members (group_id, user_id) VALUES ($1, $2)', groupId, bobId);
});
afterAll(() => app.close());

describe('GET /v1/setup', () => {
  it('lists the targets of the caller, and exactly the members of the contract', async () => {
    expect(await setupOf(bob)).toEqual({
      ssh: [{ name: 'prod', hosts: ['*.prod.setup.example'], logins: ['deploy', 'ubuntu'] }],
      aws: [{ name: 'Engineer', role_arn: ROLE, region: 'eu-central-1' }],
      kubernetes: [{ name: 'Production', resource: 'https://k8s.setup.example' }],
      github: [{ owner: 'setup-org' }],
      applications: [
        { name: 'Grafana', launch_url: 'https://grafana.setup.example/login' },
        { name: 'Wiki', launch_url: null },
      ],
      changed_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
    });
  });

  it('shows nothing of another organization', async () => {
    const { changed_at: _time, ...lists } = await setupOf(eve);
    expect(lists).toEqual(EMPTY);
    expect(JSON.stringify(lists)).not.toContain('setup');
  });

  it('refuses a visitor', async () => {
    const visitor = await app.client().get('/v1/setup', { address: newAddress() });
    expect([visitor.status, visitor.json.code]).toEqual([401, 'unauthenticated']);
  });

  it('lists what admits a group or a person, and names no group and no rule', async () => {
    const before = await setupOf(bob);
    await assignTo(app.dataSource, targets.hosts, { groups: [groupId] });
    await assignTo(app.dataSource, targets.role, { users: [bobId] });
    await assignTo(app.dataSource, targets.owner);
    const ofBob = await setupOf(bob);
    expect(ofBob).toMatchObject({ ssh: before['ssh'], aws: before['aws'], github: [] });
    const text = JSON.stringify(ofBob);
    for (const secret of [GROUP, groupId, bobId, 'because', 'everyone', 'group']) {
      expect(text).not.toContain(secret);
    }
    expect(await setupOf(ada)).toMatchObject({ ssh: [], aws: [], github: [] });
  });

  it('lists no group of hosts by a group while groups of SCIM decide nothing', async () => {
    await run('UPDATE deployment SET access_by_groups = false');
    expect(await setupOf(bob)).toMatchObject({ ssh: [] });
    await run('UPDATE deployment SET access_by_groups = true');
    expect((await setupOf(bob))['ssh']).toHaveLength(1);
  });

  it.each([
    ['an assignment ends', 'DELETE FROM access_assignments WHERE target_id = $1', 'role'],
    ['a membership ends', 'DELETE FROM group_members WHERE user_id = $1', 'bob'],
    [
      'a target is added',
      `INSERT INTO access_targets (org_id, kind, name, hosts, logins)
       SELECT org_id, 'host_group', 'more', '{more.example}', '{root}' FROM users WHERE id = $1`,
      'bob',
    ],
    [
      'patterns change',
      `UPDATE access_targets SET hosts = '{b.example}' WHERE org_id =
       (SELECT org_id FROM users WHERE id = $1) AND name = 'more'`,
      'bob',
    ],
    [
      'a target is deleted',
      `DELETE FROM access_targets WHERE org_id =
       (SELECT org_id FROM users WHERE id = $1) AND name = 'more'`,
      'bob',
    ],
  ])('changes changed_at once when %s', async (_, change, whose) => {
    const before = await setupOf(bob);
    expect((await setupOf(bob)).changed_at).toBe(before.changed_at);
    await run(change, whose === 'bob' ? bobId : targets.role);
    const after = await setupOf(bob);
    expect(after.changed_at > before.changed_at).toBe(true);
    expect((await setupOf(bob)).changed_at).toBe(after.changed_at);
  });

  it('keeps changed_at for a change that concerns another person or a condition alone', async () => {
    const before = await setupOf(bob);
    await run('UPDATE access_targets SET touch_within_seconds = 900 WHERE id = $1', targets.owner);
    await addTarget(app.dataSource, STRANGER, { name: 'prod', hosts: ['x.example'], logins: [] });
    expect((await setupOf(bob)).changed_at).toBe(before.changed_at);
    expect((await setupOf(eve))['ssh']).toHaveLength(1);
  });

  it('gives one time to 20 readings at once after a change', async () => {
    await addTarget(app.dataSource, ADMIN, {
      name: 'race',
      hosts: ['r.example'],
      logins: ['root'],
    });
    const all = await Promise.all(Array.from({ length: 20 }, () => setupOf(bob)));
    expect(new Set(all.map(({ changed_at: time }) => time)).size).toBe(1);
  });

  it('lists 1,000 targets of each kind at most', async () => {
    const before = await setupOf(bob);
    await run(
      `INSERT INTO access_targets (org_id, kind, name, hosts, logins)
       SELECT org_id, 'host_group', 'many-' || n, '{m.example}', '{root}'
       FROM users, generate_series(1, 1200) n WHERE id = $1`,
      bobId,
    );
    const { ssh, changed_at: _time, ...others } = await setupOf(bob);
    expect(ssh).toHaveLength(1000);
    expect(before).toMatchObject(others);
    expect(others['applications']).not.toEqual([]);
    await run("DELETE FROM access_targets WHERE name LIKE 'many-%'");
  });

  it('lists nothing for a person whom no target admits', async () => {
    await run('UPDATE access_targets SET access = $1', 'assigned');
    const { changed_at: _time, ...lists } = await setupOf(ada);
    expect(lists).toEqual(EMPTY);
    await run('UPDATE access_targets SET access = $1', 'everyone');
  });
});

describe('the start address of an application', () => {
  const patch = (id: string, body: object, by = ada) =>
    by.client.send('PATCH', `/api/v1/applications/${id}`, { body, address: newAddress() });
  const addressOf = async (name: string) => {
    const { applications } = await setupOf(ada);
    const found = (applications as { name: string; launch_url: string | null }[]).find(
      (one) => one.name === name,
    );
    return found?.launch_url;
  };

  it.each([
    'http://grafana.setup.example/login',
    'javascript:alert(1)//https://grafana.setup.example',
    'https://user@grafana.setup.example/',
    'https://grafana.setup.example.evil.example/',
    'https://grafana.setup.example:8443/',
    'https://grafana.setup.example/ x',
    '//grafana.setup.example/',
  ])('refuses %s', async (address) => {
    const answer = await register({ ...WEB, name: 'Bad', initiate_login_uri: address });
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
    expect(answer.json.detail).toContain('initiate_login_uri');
  });

  it('is shown by the API and changes by PATCH, null resets it', async () => {
    const { json } = await register({ ...WEB, name: 'Ticket desk' });
    expect(json.initiate_login_uri).toBeNull();
    const id = json.client_id as string;
    const start = 'https://grafana.setup.example/start?x=1';
    const set = await patch(id, { initiate_login_uri: start });
    expect([set.status, set.json.initiate_login_uri]).toEqual([200, start]);
    expect(await addressOf('Ticket desk')).toBe(start);
    const reset = await patch(id, { initiate_login_uri: null });
    expect([reset.status, reset.json.initiate_login_uri]).toEqual([200, null]);
    expect(await addressOf('Ticket desk')).toBeNull();
  });

  it('is no link while no admin approved its origin, so that no member plants one', async () => {
    const evil = 'https://payroll.evil.example';
    const body = {
      ...WEB,
      name: 'Payroll',
      redirect_uris: [`${evil}/callback`],
      initiate_login_uri: `${evil}/start`,
    };
    const made = await bob.client.post('/api/v1/applications', body, { address: newAddress() });
    expect(made.status).toBe(201);
    expect(await addressOf('Payroll')).toBeNull();
    const id = made.json.client_id as string;
    const approve = { address: newAddress() };
    const approved = await ada.client.post(`/api/v1/applications/${id}/approve`, {}, approve);
    expect(approved.status).toBe(200);
    expect(await addressOf('Payroll')).toBe(`${evil}/start`);
    const other = 'https://other.evil.example';
    const moved = {
      redirect_uris: [...body.redirect_uris, `${other}/callback`],
      initiate_login_uri: `${other}/start`,
    };
    expect((await patch(id, moved, bob)).status).toBe(200);
    expect(await addressOf('Payroll')).toBeNull();
  });
});
