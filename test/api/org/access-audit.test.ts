import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { READY_QUESTIONS } from '../../../src/domain/admin/audit-search/ready-questions.js';
import { addHostGroup, addRole, linkInstallation, putRule } from '../../support/access-api.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

const ROLE = 'arn:aws:iam::123456789012:role/production';

let app: TestApp;
let admin: Client;
let bob: Client;
let org: string;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: admin } = await app.enrolled('ada@asked.example'));
  ({ client: bob } = await app.enrolled('bob@asked.example'));
  const [row] = await rows<{ org_id: string }>(
    app.dataSource,
    "SELECT org_id FROM users WHERE email = 'bob@asked.example'",
  );
  org = row?.org_id ?? '';
});
afterAll(() => app.close());

const events = async (query: string) =>
  (await orgApi(admin, 'GET', `/audit-events?${query}`)).json.events as {
    type: string;
    details: Record<string, unknown>;
  }[];
const typesOf = async (query: string) => (await events(query)).map(({ type }) => type);
const askRole = () =>
  bob.post('/v1/credentials/aws/token', { role_arn: ROLE }, { address: newAddress() });

describe('the question who reached production', () => {
  it('finds what was issued, refused and changed for a target, by its name and by its id', async () => {
    const path = await addRole(admin, ROLE, 'production');
    expect((await askRole()).status).toBe(200);
    await putRule(admin, path, {});
    expect((await askRole()).status).toBe(403);
    const issued = ['aws_credential'];
    expect(await typesOf('target=production&type=access')).toEqual(issued);
    expect(await typesOf(`target=${encodeURIComponent(ROLE)}&type=access`)).toEqual(issued);
    expect(await typesOf(`target=${encodeURIComponent(ROLE)}&type=access_refused`)).toEqual([
      'access_refused',
    ]);
    expect(await typesOf('target=Production&type=access_rule_changed')).toHaveLength(2);
    expect(await typesOf(`target=${path.split('/')[2]}`)).toHaveLength(2);
    expect(await typesOf('target=production&type=access_refused')).toEqual(['access_refused']);
    expect(await typesOf('target=another')).toEqual([]);
    expect(await typesOf('target=production&type=access&person=ada@asked.example')).toEqual([]);
  });

  it('finds a certificate by the principals of a group, and not by those of another organization', async () => {
    await addHostGroup(admin, 'prod-hosts');
    for (const owner of [org, randomUUID()]) {
      await rows(
        app.dataSource,
        `INSERT INTO audit_events (id, type, class, org_id, details)
         VALUES (gen_random_uuid(), 'ssh_credential', 'oauth', $1, jsonb_build_object('principals', jsonb_build_array($2::text)))`,
        [org, `deploy@prod-hosts:${owner}`],
      );
    }
    const found = await events('target=prod-hosts&type=access');
    expect(found.map(({ details }) => details)).toEqual([
      { principals: [`deploy@prod-hosts:${org}`] },
    ]);
    expect(await typesOf('target=hosts&type=access')).toEqual([]);
  });

  it('finds the refusals of a group of hosts, by the host and by the principals', async () => {
    const refused = (name: string) => events(`target=${name}&type=access_refused`);
    const ask = (body: object) =>
      bob.post(
        '/v1/credentials/ssh',
        { public_key: newPublicKeyLine(), ...body },
        { address: newAddress() },
      );
    const path = await addHostGroup(admin, 'refusing');
    await putRule(admin, path, {});
    expect((await ask({ host: 'db.refusing.example.com' })).status).toBe(403);
    expect(await refused('Refusing')).toMatchObject([
      {
        details: {
          target: { kind: 'host_group', name: 'db.refusing.example.com' },
          rule: 'assignment',
          host_groups: ['refusing'],
        },
      },
    ]);
    await putRule(admin, path, { access: 'everyone', conditions: { models: 'fips-only' } });
    expect((await ask({ principals: [`deploy@refusing:${org}`] })).status).toBe(401);
    expect(await refused('refusing')).toMatchObject([
      { details: { rule: 'condition', host_groups: ['refusing'] } },
      { details: { rule: 'assignment' } },
    ]);
    expect(await refused('prod-hosts')).toEqual([]);
    expect((await ask({ principals: [`deploy@unheard-of:${org}`] })).status).toBe(403);
    expect(await refused('unheard-of')).toMatchObject([
      { details: { rule: 'assignment', principals: [`deploy@unheard-of:${org}`] } },
    ]);
  });

  it('finds a refusal that an earlier version recorded with the host alone', async () => {
    await addHostGroup(admin, 'early');
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, org_id, details)
       SELECT gen_random_uuid(), 'access_refused', 'oauth', $1,
         jsonb_build_object('target', jsonb_build_object('kind', 'host_group', 'name', h), 'rule', 'assignment')
       FROM unnest(ARRAY['a.early.example.com', 'a.late.example.com', NULL]) h`,
      [org],
    );
    const found = await events('target=early&type=access_refused');
    expect(found).toMatchObject([{ details: { target: { name: 'a.early.example.com' } } }]);
  });

  it('is saved with its target, and asked on the page', async () => {
    const body = { name: 'Production?', type: 'access', target: 'production' };
    const saved = await orgApi(admin, 'POST', '/audit-questions', body);
    expect(saved.status).toBe(201);
    expect(saved.text).toContain('"target":"production"');
    const page = await admin.get('/admin/audit?type=access&target=production');
    expect(page.text).toContain(ROLE);
  });
});

describe('the question who lost access, when and why', () => {
  it('is ready for every organization, and names the person, the target and the rule', async () => {
    await linkInstallation(app, 'ada@asked.example', 77, 'asked-inc');
    const path = '/github_installation/77';
    const id = await idOf(app, 'bob@asked.example');
    await putRule(admin, path, { assignments: [{ user: id }] });
    await rows(
      app.dataSource,
      `INSERT INTO github_tokens (id, installation_id, owner, user_id, org_id, session_id, sealed, permissions, expires_at)
       SELECT gen_random_uuid(), 77, 'asked-inc', u.id, u.org_id, s.id, 'x', '{}', now() + interval '1 hour'
       FROM users u JOIN sessions s ON s.user_id = u.id WHERE u.id = $1 LIMIT 1`,
      [id],
    );
    await putRule(admin, path, {});
    const ready = READY_QUESTIONS.find(({ name }) => name.startsWith('Who lost access'));
    const page = await admin.get(`/admin/audit?type=${ready?.question.type}`);
    const text = page.text.replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ');
    expect(text).toContain('lost the reach of the GitHub owner asked-inc: no longer assigned');
  });
});
