import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addGroup, addHostGroup, addRole, putRule } from '../../support/access-api.js';
import { provision } from '../../support/access-targets.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { cliToken, clusterToken } from '../../support/cli-token.js';
import { newAddress } from '../../support/client.js';
import { assigned } from '../../support/domains.js';
import { rows } from '../../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../../support/scim-organization.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

const DOMAIN = 'exported.example';
const ADMIN = `admin@${DOMAIN}`;
const MAIL = `member@${DOMAIN}`;
const HOST = 'db.basalt.example.com';
const CLUSTER = `https://prod.${DOMAIN}`;
const UNKNOWN_CLUSTER = `https://none.${DOMAIN}`;
const ROLE = 'arn:aws:iam::123456789012:role/onyx';
/**
 * Names of SCIM groups. They occur in no other text, so that each match in the export is a leak.
 */
const GROUP = 'Zircon Falcons';
const SECOND_GROUP = 'Quartz Herons';

interface ExportedEvent {
  readonly type: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/**
 * A member downloads the export of the account, and must not learn from it which rules and groups
 * refused or ended the access.
 */
describe('GET /v1/account/export of a person whose reach was refused and ended', () => {
  let app: TestApp;
  let own: ScimOrganization;
  let member: EnrolledUser;
  let memberId: string;
  let groups: string[];
  let roleId: string;
  /** The values that the person must not learn: ids and names of groups, ids of targets. */
  let secrets: string[];

  beforeAll(async () => {
    app = await startTestApp();
    own = await foundOrganization(app, DOMAIN);
    const admin = own.admin.client;
    memberId = await provision(own, MAIL);
    member = await app.enrolled(MAIL);
    groups = [
      await addGroup(own, GROUP, [memberId]),
      await addGroup(own, SECOND_GROUP, [memberId]),
    ];
    await assigned(app, ADMIN, DOMAIN);
    const cluster = await admin.post('/api/v1/applications', {
      name: 'Production',
      type: 'kubernetes',
      resource: CLUSTER,
    });
    if (cluster.status !== 201) throw new Error(cluster.text);
    const clusterId = String(cluster.json.client_id);
    const hosts = await addHostGroup(admin, 'basalt');
    const role = await addRole(admin, ROLE, 'onyx');
    for (const path of [`/application/${clusterId}`, hosts]) await putRule(admin, path, {});
    await putRule(admin, role, { assignments: [{ group: groups[0] }] });
    roleId = role.split('/')[2] ?? '';
    const [token] = await rows<{ id: string }>(app.dataSource, 'SELECT id FROM scim_tokens');
    const ids = [clusterId, hosts.split('/')[2] ?? '', roleId, token?.id ?? ''];
    secrets = [...groups, GROUP, SECOND_GROUP, ...ids];
  });
  afterAll(() => app.close());

  async function exported() {
    const path = '/v1/account/export';
    const { status, text } = await member.client.get(path, { address: newAddress() });
    expect(status).toBe(200);
    const { activity } = JSON.parse(text) as { readonly activity: readonly ExportedEvent[] };
    return {
      found: secrets.filter((secret) => text.toLowerCase().includes(secret.toLowerCase())),
      detailsOf: (type: string) =>
        activity.filter((event) => event.type === type).map(({ details }) => details),
    };
  }

  const ask = (path: string, body: object) =>
    member.client.post(path, body, { address: newAddress() });

  it('has of a refusal what the request named, alike for an unknown and an unassigned target', async () => {
    const token = await cliToken(app, member.key);
    for (const resource of [CLUSTER, UNKNOWN_CLUSTER]) {
      expect((await clusterToken(app, token, resource)).status).toBe(400);
    }
    const sshBody = { public_key: newPublicKeyLine(), host: HOST };
    expect((await ask('/v1/credentials/ssh', sshBody)).status).toBe(403);
    const { found, detailsOf } = await exported();
    expect(detailsOf('access_refused')).toEqual([
      { target: { kind: 'host_group', name: HOST } },
      { target: { kind: 'application', name: UNKNOWN_CLUSTER } },
      { target: { kind: 'application', name: CLUSTER } },
    ]);
    expect(found).toEqual([]);
  });

  it('has of a refused certificate the principals, alike for an unknown group of hosts', async () => {
    const [organization] = await rows<{ org_id: string }>(
      app.dataSource,
      'SELECT org_id FROM users WHERE id = $1',
      [memberId],
    );
    const names = ['basalt', 'obsidian'].map((name) => `deploy@${name}:${organization?.org_id}`);
    for (const name of names) {
      const body = { public_key: newPublicKeyLine(), principals: [name] };
      const { status, json } = await ask('/v1/credentials/ssh', body);
      expect([status, json.code]).toEqual([403, 'not_assigned']);
    }
    const { found, detailsOf } = await exported();
    const target = { kind: 'host_group', name: null };
    expect(detailsOf('access_refused').slice(0, 2)).toEqual(
      names.toReversed().map((name) => ({ target, principals: [name] })),
    );
    expect(found).toEqual([]);
  });

  it('has the conditions that a refusal told', async () => {
    const path = await addHostGroup(own.admin.client, 'gneiss');
    const conditions = { models: 'fips-only' };
    await putRule(own.admin.client, path, { access: 'everyone', conditions });
    const sshBody = { public_key: newPublicKeyLine(), host: 'db.gneiss.example.com' };
    expect((await ask('/v1/credentials/ssh', sshBody)).status).toBe(401);
    const [refusal] = (await exported()).detailsOf('access_refused');
    expect(refusal).toMatchObject({ conditions: { models: 'fips-only' } });
    expect(JSON.stringify(refusal)).not.toContain(path.split('/')[2]);
  });

  it('has of an ended reach the target, the rule and what ended, and no id', async () => {
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp'];
    const path = `members[value eq "${memberId}"]`;
    const left = await own.scim('PATCH', `/Groups/${groups[0]}`, {
      schemas,
      Operations: [{ op: 'remove', path }],
    });
    expect(left.status).toBeLessThan(300);
    const details = { scim_token_id: randomUUID(), certificates: 2, tokens: 1 };
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, subject_id, details) VALUES (gen_random_uuid(), 'access_ended', 'admin', $1, $2)`,
      [
        memberId,
        { target: { kind: 'aws_role', name: 'onyx', id: roleId }, rule: 'rule', ...details },
      ],
    );
    const { found, detailsOf } = await exported();
    const target = { kind: 'aws_role', name: 'onyx' };
    expect(detailsOf('access_ended')).toEqual([
      { target, rule: 'rule', certificates: 2, tokens: 1 },
      { target, rule: 'membership' },
    ]);
    expect(found).toEqual([]);
  });

  it('has no SCIM token of a change of the account by SCIM', async () => {
    const changed = await own.scim('PATCH', `/Users/${memberId}`, {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
      Operations: [{ op: 'replace', path: 'displayName', value: 'Mem Ber' }],
    });
    expect(changed.status).toBe(200);
    const { found, detailsOf } = await exported();
    expect(detailsOf('scim_operation').map(({ operation }) => operation)).toEqual([
      'update',
      'create',
    ]);
    expect(found).toEqual([]);
  });

  it('has of the rules that a former admin changed the people, and no group', async () => {
    const setAdmin = (is: boolean) =>
      rows(app.dataSource, 'UPDATE users SET is_org_admin = $2 WHERE id = $1', [memberId, is]);
    await setAdmin(true);
    const path = await addHostGroup(member.client, 'schist');
    const person = { user: memberId };
    const both = groups.map((group) => ({ group }));
    await putRule(member.client, path, { assignments: [person, ...both] });
    await putRule(member.client, path, { assignments: [person] });
    await setAdmin(false);
    const { found, detailsOf } = await exported();
    const [second, first] = detailsOf('access_rule_changed');
    expect(first).toMatchObject({ change: 'rule', assigned: [{ user: memberId, email: MAIL }] });
    expect(second).toMatchObject({ change: 'rule', target: { kind: 'host_group' } });
    expect(second).not.toHaveProperty('removed');
    expect(found).toEqual([]);
  });
});
