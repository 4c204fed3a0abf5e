import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DataSource } from 'typeorm';
import { RecentEnds } from '../../src/domain/admin/database-failover/reconciliation/recent-ends.js';
import { listKeptSecrets } from '../../src/domain/admin/database-failover/reconciliation/lost-acts.repository.js';
import { redo } from '../../src/domain/admin/database-failover/reconciliation/redo.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { addApplication } from '../support/applications.js';
import { renameProvider } from '../support/break-glass.js';
import { newAddress } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { orgApi } from '../support/org-api.js';
import { count, rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { administer, urlOf } from '../support/test-server.js';

/**
 * Two databases: one on which the actions are committed, and an earlier copy of it. The copy stands
 * for a standby that lagged when it was promoted.
 */
let database: TestDatabase;
let promoted: DataSource;
let copyName: string;
let app: TestApp;
let org: ScimOrganization;
const ids: Record<string, string> = {};
const DOMAIN = 'lag.example';
const people = ['leaver', 'paused', 'stolen', 'colleague', 'demoted', 'single', 'passed'] as const;
let rotated: string;
let deleted: string;
let signalled: string;

beforeAll(async () => {
  database = await createTestDatabase();
  const before = await startTestApp({ database });
  org = await foundOrganization(before, DOMAIN);
  await rows(before.dataSource, "UPDATE organizations SET membership = 'open'");
  for (const name of people) ids[name] = await addColleague(before, name);
  await rows(before.dataSource, 'UPDATE users SET is_org_admin = true WHERE id = $1', [
    ids['demoted'],
  ]);
  const owner = { owner: `admin@${DOMAIN}` };
  rotated = (await addApplication(before, METADATA, owner)).clientId;
  deleted = (await addApplication(before, METADATA, owner)).clientId;
  signalled = (await addApplication(before, METADATA, owner)).clientId;
  await rows(
    before.dataSource,
    `WITH allowed AS (
       INSERT INTO signal_receivers (client_id, subject_format) VALUES ($1, 'iss_sub') RETURNING client_id
     )
     INSERT INTO signal_streams (id, client_id, org_id, method, events)
     SELECT gen_random_uuid(), a.client_id, u.org_id, 'poll', '{}' FROM allowed a, users u WHERE u.email = $2`,
    [signalled, owner.owner],
  );
  for (const table of ['ssh_authorities', 'ssh_authority']) {
    await rows(before.dataSource, `DELETE FROM ${table}`); // the next start has another SSH CA key
  }
  await before.close();
  copyName = `test_${randomUUID().replaceAll('-', '')}`;
  const server = inject('testServer');
  await administer(server, `CREATE DATABASE ${copyName} TEMPLATE ${database.name}`);
  promoted = await new DataSource({ type: 'postgres', url: urlOf(server, copyName) }).initialize();
  app = await startTestApp({ database });
  await renameProvider(app);
});
afterAll(async () => {
  await promoted.destroy();
  await app.close();
  await database.drop();
  await administer(inject('testServer'), `DROP DATABASE ${copyName} WITH (FORCE)`);
});

/** Inserts a member of SCIM with an identity and two keys. Returns the id. */
async function addColleague(before: TestApp, name: string): Promise<string> {
  const [row] = await rows<{ id: string }>(
    before.dataSource,
    `INSERT INTO users (id, org_id, email, user_name, scim_managed)
     SELECT gen_random_uuid(), org_id, $1, $1, true FROM users WHERE email = $2 RETURNING id`,
    [`${name}@${DOMAIN}`, `admin@${DOMAIN}`],
  );
  const id = row?.id ?? '';
  await rows(
    before.dataSource,
    "INSERT INTO identities (issuer, subject, user_id) VALUES ('x', $1::text, $1::uuid)",
    [id],
  );
  await rows(
    before.dataSource,
    `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
     SELECT gen_random_uuid(), $1, uuid_send(gen_random_uuid()), 'pem', 0, 'packed', true, n::text FROM generate_series(1, 2) n`,
    [id],
  );
  return id;
}

const METADATA = {
  client_name: 'Wiki',
  application_type: 'web',
  redirect_uris: ['https://wiki.example/callback'],
  grant_types: ['authorization_code'],
  response_types: ['code'],
  token_endpoint_auth_method: 'client_secret_basic',
};
const recent = () => app.nest.get(RecentEnds, { strict: false }).recent();
const there = (of: string, parameters: unknown[] = []) => count(promoted, of, parameters);

describe('what the database lost', () => {
  it('is done again on the promoted server, once, and the secrets are listed', async () => {
    const admin = app.client();
    await admin.signIn(`admin@${DOMAIN}`);
    const touch = () => admin.logIn(org.admin.key, { address: newAddress() });
    expect((await touch()).status).toBe(200);
    const scim = (method: string, path: string, body?: unknown) =>
      app.client().send(method, `/scim/v2${path}`, {
        address: newAddress(),
        ...(body === undefined ? {} : { body }),
        headers: { authorization: `Bearer ${org.token}`, origin: '' },
      });
    const keyOf = async (name: string) =>
      (
        await rows<{ id: string }>(
          app.dataSource,
          'SELECT id FROM authenticators WHERE user_id = $1 ORDER BY created_at',
          [ids[name]],
        )
      ).map(({ id }) => id);
    const act = async (method: string, path: string, body?: unknown) => {
      const answer = await orgApi(admin, method, path, body);
      expect([path, answer.status < 300, answer.text]).toEqual([path, true, answer.text]);
      return answer;
    };
    expect((await scim('DELETE', `/Users/${ids['leaver']}`)).status).toBe(204);
    const operations = [{ op: 'replace', path: 'active', value: false }];
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp'];
    const paused = await scim('PATCH', `/Users/${ids['paused']}`, {
      schemas,
      Operations: operations,
    });
    expect(paused.status).toBe(200);
    const [stolenKey] = await keyOf('stolen');
    await act('DELETE', `/members/${ids['stolen']}/keys/${stolenKey}`);
    await act('POST', `/members/${ids['colleague']}/revoke-credentials`);
    await act('POST', `/members/${ids['demoted']}/demote`);
    await act('POST', `/members/${ids['passed']}/enrollment-passes`);
    await act('POST', `/members/${ids['single']}/deactivate`);
    await act('POST', `/members/${ids['single']}/activate`);
    const made = await act('POST', '/scim-tokens', { description: 'new' });
    const [old] = await rows<{ id: string }>(
      app.dataSource,
      "SELECT id FROM scim_tokens WHERE description = 'a test'",
    );
    await act('DELETE', `/scim-tokens/${old?.id}`);
    const secrets = `/api/v1/applications/${rotated}/secrets`;
    const rotation = await admin.post(
      secrets,
      { expires_previous_in_seconds: 600 },
      { address: newAddress() },
    );
    expect([rotation.status, rotation.text]).toEqual([201, rotation.text]);
    const gone = await admin.send('DELETE', `/api/v1/applications/${deleted}`, {
      address: newAddress(),
    });
    expect(gone.status).toBeLessThan(300);

    const signals = `/api/v1/applications/${signalled}/signals`;
    const withdrawn = await admin.send('DELETE', signals, { address: newAddress() });
    expect([withdrawn.status, withdrawn.text]).toEqual([204, '']);
    // Inserts tokens on the promoted server that were issued before it lagged.
    await rows(
      promoted,
      `INSERT INTO oauth_artifacts (model, id, payload, client_id, expires_at)
       SELECT 'ClientCredentials', uuid_send(gen_random_uuid()), jsonb_build_object('aud', aud), $1, now() + interval '5 minutes'
       FROM unnest($2::text[]) aud`,
      [signalled, [`${app.baseUrl}/ssf`, 'https://other.example']],
    );

    const acts = recent();
    expect(await there('users WHERE id = $1', [ids['leaver']])).toBe(1);
    expect(await there('signal_streams WHERE client_id = $1', [signalled])).toBe(1);
    // Two processes repeat the actions at once: each action is counted by one of them.
    const twice = await Promise.all([redo(promoted, acts), redo(promoted, acts)]);
    const changed = 10;
    expect(twice.reduce((sum, { redone }) => sum + redone, 0)).toBe(changed);
    expect((await redo(promoted, acts)).redone).toBe(0);

    expect(await there('users WHERE id = $1', [ids['leaver']])).toBe(0);
    expect(
      await there('scim_tombstones WHERE email = $1 AND NOT by_admin', [`leaver@${DOMAIN}`]),
    ).toBe(1);
    expect(await there('scim_removed_identities WHERE removed_user = $1', [ids['leaver']])).toBe(1);
    expect(await there('users WHERE id = $1 AND NOT active', [ids['paused']])).toBe(1);
    expect(await there('authenticators WHERE id = $1', [stolenKey])).toBe(0);
    expect(await there('authenticators WHERE user_id = $1', [ids['stolen']])).toBe(1);
    expect(await there('authenticators WHERE user_id = $1', [ids['colleague']])).toBe(0);
    expect(await there('users WHERE id = $1 AND is_org_admin', [ids['demoted']])).toBe(0);
    expect(await there('users WHERE id = $1 AND active', [ids['single']])).toBe(1);
    expect(
      await there('enrollment_passes WHERE user_id = $1 AND hash IS NULL', [ids['passed']]),
    ).toBe(1);
    expect(await there('scim_tokens WHERE id = $1 AND revoked_at IS NOT NULL', [old?.id])).toBe(1);
    expect(await there('oauth_clients WHERE id = $1', [deleted])).toBe(0);
    for (const table of ['signal_receivers', 'signal_streams']) {
      expect(await there(`${table} WHERE client_id = $1`, [signalled])).toBe(0);
    }
    const left = await rows(
      promoted,
      "SELECT payload ->> 'aud' AS aud FROM oauth_artifacts WHERE client_id = $1",
      [signalled],
    );
    expect(left).toEqual([{ aud: 'https://other.example' }]);
    expect(
      await there(
        "oauth_client_secrets WHERE client_id = $1 AND expires_at < now() + interval '11 minutes'",
        [rotated],
      ),
    ).toBe(1);
    const listed = await rows(
      promoted,
      'SELECT secret, act, name, is_lost FROM secrets_to_confirm ORDER BY secret, act',
    );
    expect(listed).toEqual([
      { secret: 'client_secret', act: 'ended', name: 'Wiki', is_lost: true },
      { secret: 'client_secret', act: 'made', name: 'Wiki', is_lost: true },
      { secret: 'scim_token', act: 'ended', name: 'a test', is_lost: true },
      { secret: 'scim_token', act: 'made', name: 'new', is_lost: true },
    ]);
    expect(await there('secrets_to_confirm WHERE secret_id = $1', [made.json.id])).toBe(1);
    const audited = await rows<{
      type: string;
      actor_id: string | null;
      details: { database_lost: string };
    }>(
      promoted,
      "SELECT type, actor_id, details FROM audit_events WHERE details ->> 'by' = 'reconciliation' ORDER BY id",
    );
    expect(audited.map(({ type }) => type).toSorted()).toEqual([
      'admin_demote',
      'admin_revoke_credentials',
      'admin_revoke_credentials',
      'key_removed',
      'oauth_client_deleted',
      'oauth_client_updated',
      'oauth_secret_revoked',
      'scim_operation',
      'scim_operation',
      'scim_token_revoked',
    ]);
    expect(audited.every(({ actor_id: actor }) => actor === null)).toBe(true);
    const first = await rows(app.dataSource, 'SELECT id FROM audit_events WHERE id = ANY ($1)', [
      audited.map(({ details }) => details.database_lost),
    ]);
    expect(first).toHaveLength(10);
  });

  it('is nothing on a server that kept it: the acts are not done a second time, and their secrets are listed', async () => {
    const acts = recent();
    expect(await redo(app.dataSource, acts)).toEqual({ lost: 0, redone: 0 });
    expect(await count(app.dataSource, 'secrets_to_confirm WHERE NOT is_lost')).toBe(4);
    await rows(app.dataSource, 'DELETE FROM secrets_to_confirm');
    await app.dataSource.transaction((tx) => listKeptSecrets(tx));
    expect(
      await rows(
        app.dataSource,
        'SELECT act, name FROM secrets_to_confirm ORDER BY secret, act, name',
      ),
    ).toEqual([
      { act: 'made', name: 'Wiki' },
      { act: 'ended', name: 'a test' },
      { act: 'made', name: 'a test' },
      { act: 'made', name: 'new' },
    ]);
  });

  it('an admin sees each secret on the page and in the API, and confirms it once, with a touch', async () => {
    const admin = app.client();
    await admin.signIn(`admin@${DOMAIN}`);
    const touch = () => admin.logIn(org.admin.key, { address: newAddress() });
    expect((await touch()).status).toBe(200);
    const list = async () =>
      (await orgApi(admin, 'GET', '/secrets-to-confirm')).json.secrets as {
        id: string;
        act: string;
      }[];
    const listed = await list();
    const first = listed.find(({ act }) => act === 'ended');
    const others = listed.filter((one) => one !== first);
    expect(first).toMatchObject({ kind: 'scim_token', name: 'a test', act: 'ended', valid: false });
    expect(others).toHaveLength(3);
    const page = (await admin.get('/admin/scim-tokens')).text;
    expect(page.match(/data-secret-to-confirm/g)).toHaveLength(4);
    const path = `/secrets-to-confirm/${first?.id}/confirm`;
    await rows(app.dataSource, "UPDATE sessions SET auth_time = now() - interval '10 minutes'");
    const untouched = await orgApi(admin, 'POST', path);
    expect([untouched.status, untouched.json.code]).toEqual([
      401,
      'insufficient_user_authentication',
    ]);
    await touch();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => orgApi(admin, 'POST', path)),
    );
    const statuses = answers.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([204, ...Array<number>(19).fill(404)]);
    expect((await orgApi(admin, 'POST', '/secrets-to-confirm/none/confirm')).status).toBe(404);
    const foreign =
      'UPDATE secrets_to_confirm SET org_id = gen_random_uuid() WHERE id = $1 RETURNING id';
    await rows(app.dataSource, foreign, [others[0]?.id]);
    const refused = await orgApi(admin, 'POST', `/secrets-to-confirm/${others[0]?.id}/confirm`);
    expect(refused.status).toBe(404);
    expect(await list()).toHaveLength(2);
    expect(await count(app.dataSource, "audit_events WHERE type = 'secret_confirmed'")).toBe(1);
  });
});
