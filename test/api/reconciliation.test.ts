import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { endEverything } from '../../src/domain/admin/database-failover/reconciliation/end-everything.js';
import { ENDED_TABLES } from '../../src/domain/admin/database-failover/reconciliation/ended-tables.repository.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { OauthRows } from '../support/oauth-rows.js';
import { postForm } from '../support/oauth-flow.js';
import { idOf, orgApi } from '../support/org-api.js';
import { passFor, startWith } from '../support/passes.js';
import { RecordingLog } from '../support/recording-log.js';
import { auditOf, count, rows } from '../support/rows.js';
import { foundOrganization } from '../support/scim-organization.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/**
 * The tables that keep their rows: users, keys, registrations, settings, logs, and records of spent
 * tokens.
 */
const KEPT = `
  access_assignments access_endings access_kept_clusters access_kept_host_rules access_kept_rules access_targets access_versions account_notices audit_checkpoints audit_epochs audit_events audit_leaves audit_nodes audit_seal audit_seal_keys audit_trees authenticators client_sign_ins database_identity deployment directory_locks dns_proven_domains document_keys
  github_deliveries github_installations group_member_versions group_members groups identities logins_since_reconciliation logout_notices notice_counts
  oauth_client_secrets oauth_clients oauth_consents oauth_ending_clients oauth_replays oauth_user_code_tries organization_domains
  organization_issuer_keys organization_issuers organization_providers organizations own_reach_lists rate_limits record_addresses
  record_ties redone_acts replica_reports replicas saml_sp_keys saved_questions schema_migrations scim_refusals
  scim_removed_identities scim_tokens scim_tombstones secrets_to_confirm signal_events signal_receivers
  signal_removed_subjects signal_streams spent_tokens ssh_attested_keys ssh_authorities
  ssh_authority ssh_certificate_groups ssh_revocation_list ssh_revoked_ranges ssh_revoked_signatures token_signing_keys undelivered_events users`;

const log = new RecordingLog();
const end = () => endEverything(app.dataSource, log);
/** Does what the confirmation does after a server has lost commits. */
async function reconcile(): Promise<void> {
  await rows(app.dataSource, 'UPDATE database_identity SET reconciled_at = clock_timestamp()');
  await end();
}

describe('the end of everything on record', () => {
  /** For each table, the condition of the rows that give access. */
  const LIVE: Readonly<Record<(typeof ENDED_TABLES)[number], string>> = {
    sessions: 'sessions',
    oauth_grants: 'oauth_grants',
    oauth_artifacts: 'oauth_artifacts',
    saml_assertions: 'saml_assertions WHERE handle IS NOT NULL AND collected_at IS NULL',
    ssh_certificates: 'ssh_certificates WHERE revoked_at IS NULL AND valid_before > now()',
    github_tokens: "github_tokens WHERE next_attempt_at IS DISTINCT FROM '-infinity'",
    enrollment_passes: 'enrollment_passes WHERE hash IS NOT NULL',
    api_tokens: 'api_tokens WHERE revoked_at IS NULL',
    event_receivers: "event_receivers WHERE status = 'enabled'",
  };
  const live = async () =>
    Object.fromEntries(
      await Promise.all(
        Object.entries(LIVE).map(async ([table, of]) => [table, await count(app.dataSource, of)]),
      ),
    ) as Record<string, number>;

  it('ends every table that gives access, and leaves every other one', async () => {
    const tables = await rows<{ name: string }>(
      app.dataSource,
      `SELECT relname::text AS name FROM pg_class
       WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1`,
    );
    const left = tables.map(({ name }) => name).filter((name) => !(name in LIVE));
    // If this fails for a new table that gives access, add the table to ENDED_TABLES and its kind
    // to `revokeOnRecord`.
    expect(left).toEqual(KEPT.trim().split(/\s+/));
    expect([...ENDED_TABLES]).toEqual(Object.keys(LIVE));
  });

  it('names the table whose writers it waits for', async () => {
    const writer = app.dataSource.createQueryRunner();
    await writer.startTransaction();
    await writer.query('DELETE FROM github_tokens');
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const ending = end();
      await untilWaiting(app.dataSource, 1);
      vi.advanceTimersByTime(10_000);
      expect(log.lines.join()).toMatch(/^warn .* github_tokens /);
      await writer.rollbackTransaction();
      await ending;
    } finally {
      vi.useRealTimers();
      await writer.release();
    }
  });

  it('ends sessions, grants, tokens, codes, requests, passes and certificates, and keeps keys and users', async () => {
    const { client: ada } = await app.enrolled('ada@everything.example');
    await app.enrolled('bob@everything.example');
    const issued = await ada.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    expect(issued.status).toBe(200);
    const pass = await passFor(ada, await idOf(app, 'bob@everything.example'));
    const bobAgain = app.client();
    await bobAgain.signIn('bob@everything.example');
    const pending = app.client();
    await pending.signIn('new@everything.example');
    const device = await postForm(app, '/oauth/device', { client_id: 'svc-cli' });
    expect(device.status).toBe(200);
    const data = new OauthRows(app.dataSource);
    const user = await data.user();
    await data.token(user);
    const application = await data.application(user);
    const tokens = { clientId: application };
    await data.artifact('ClientCredentials', randomUUID(), tokens);
    await data.artifact('PushedAuthorizationRequest', randomUUID(), tokens);
    await data.artifact('Interaction', randomUUID(), { userId: user.id });
    await rows(
      app.dataSource,
      `INSERT INTO saml_assertions (id, handle, request_id, identity, expires_at)
       VALUES ($1, $2, 'r', '{}', now() + interval '1 minute')`,
      [randomBytes(32), randomBytes(32)],
    );
    await rows(
      app.dataSource,
      `INSERT INTO github_tokens (id, installation_id, owner, user_id, org_id, session_id, sealed, permissions, expires_at)
       VALUES ($1, 1, 'acme', $2, $3, $4, 'x', '{}', now() + interval '1 hour')`,
      [randomUUID(), user.id, user.orgId, randomUUID()],
    );
    const made = { name: 'SIEM', scopes: ['audit:read'] };
    expect((await orgApi(ada, 'POST', '/api-tokens', made)).status).toBe(201);
    const receiver = { name: 'SIEM', kind: 'otlp', url: 'http://127.0.0.1:9/' };
    expect((await orgApi(ada, 'POST', '/event-receivers', receiver)).status).toBe(201);
    const before = await live();
    expect(Object.values(before).every((number) => number > 0)).toBe(true);
    const kept = 'users u JOIN authenticators k ON k.user_id = u.id';
    const keys = await count(app.dataSource, kept);
    const ended = await end();
    expect(ended).toMatchObject({
      api_tokens: 1,
      enrollment_passes: 1,
      event_receivers: 1,
      github_tokens: 1,
      grants: 1,
    });
    expect(ended['sessions']).toBeGreaterThanOrEqual(4);
    expect(Object.values(await live())).toEqual(Object.keys(before).map(() => 0));
    expect(await count(app.dataSource, kept)).toBe(keys);
    for (const browser of [ada, bobAgain]) expect((await browser.get('/v1/keys')).status).toBe(401);
    const [certificate] = await rows(
      app.dataSource,
      'SELECT revoke_reason, revoked_by FROM ssh_certificates WHERE serial = $1',
      [issued.json.serial],
    );
    expect(certificate).toEqual({
      revoke_reason: 'database lost commits',
      revoked_by: 'reconciliation',
    });
    // The user still needs a pass to enroll, and the earlier pass is refused.
    const later = app.client();
    await later.signIn('bob@everything.example');
    expect((await startWith(later, pass)).json).toMatchObject({ code: 'enrollment_pass_invalid' });
    // the session of the upstream login above
    expect(await end()).toEqual({ sessions: expect.any(Number) });
    expect(await end()).toEqual({});
  });

  it('goes on where a run was killed, and ends 5,000 sessions in a transaction', async () => {
    const user = await new OauthRows(app.dataSource).user();
    const add = (sessions: number) =>
      rows(
        app.dataSource,
        `INSERT INTO sessions (id, token_hash, level, user_id, expires_at)
         SELECT gen_random_uuid(), sha256(n::text::bytea), 'bootstrap', $1, now() + interval '1 hour'
         FROM generate_series(1, $2::int) n`,
        [user.id, sessions],
      );
    await end();
    await add(5_001);
    const faulty = Object.create(app.dataSource) as typeof app.dataSource;
    let batches = 0;
    const transaction = app.dataSource.transaction.bind(app.dataSource);
    Object.assign(faulty, {
      transaction: async (work: (manager: unknown) => Promise<unknown>) =>
        transaction(async (tx) => {
          const result = await work(tx);
          const isBatch = typeof result === 'object' && result !== null && 'counts' in result;
          // Batches 1 and 2 queue the signals and logout notices, and 3 ends 5,000 sessions.
          if (isBatch && (batches += 1) === 4) throw new Error('killed');
          return result;
        }),
    });
    await expect(endEverything(faulty, log)).rejects.toThrow('killed');
    expect(await count(app.dataSource, 'sessions')).toBe(1);
    expect(await end()).toMatchObject({ sessions: 1 });
  });
});

describe('after everything on record was ended', () => {
  const fido2 = async (key: { get: (...of: never[]) => unknown }) => {
    const asked = await postForm(app, '/oauth/fido2/challenge', { client_id: 'svc-cli' });
    const credential = (key.get as (options: unknown, origin: string) => unknown)(
      asked.json.publicKey,
      'svc-native:svc-cli',
    );
    return postForm(app, '/oauth/token', {
      grant_type: 'urn:svc:params:oauth:grant-type:fido2',
      client_id: 'svc-cli',
      state: asked.json.state,
      assertion: Buffer.from(JSON.stringify(credential)).toString('base64url'),
    });
  };

  it('the next login needs the provider and the key, and then the key alone is enough again', async () => {
    const { key, client } = await app.enrolled('ada@both.example');
    await reconcile();
    expect((await client.get('/v1/keys')).status).toBe(401);
    const alone = app.client();
    const refused = await alone.logIn(key);
    expect([refused.status, refused.json.code]).toEqual([403, 'sign_in_required']);
    expect(refused.json.detail).toContain('Sign in at your identity provider first');
    const native = await fido2(key);
    expect([native.status, native.json]).toEqual([
      400,
      { error: 'interaction_required', error_description: expect.stringContaining('Sign in at') },
    ]);
    const failures = (await auditOf(app.dataSource, 'ada@both.example')).filter(
      ({ type }) => type === 'login_failed',
    );
    expect(failures).toHaveLength(2);
    const both = app.client();
    await both.signIn('ada@both.example');
    expect((await both.logIn(key)).status).toBe(200);
    expect((await both.logIn(key)).status).toBe(200); // a step-up
    expect((await app.client().logIn(key)).status).toBe(200);
    expect((await fido2(key)).status).toBe(200);
    await reconcile();
    expect((await app.client().logIn(key)).status).toBe(403);
  });

  it('a sign-in from before does not count, and the one of another user neither', async () => {
    const ada = await app.enrolled('ada@before.example');
    await app.enrolled('bob@before.example');
    const earlier = app.client();
    await earlier.signIn('ada@before.example');
    await rows(app.dataSource, 'UPDATE database_identity SET reconciled_at = clock_timestamp()');
    const refused = await earlier.logIn(ada.key);
    expect([refused.status, refused.json.code]).toEqual([403, 'sign_in_required']);
    const bobs = app.client();
    await bobs.signIn('bob@before.example');
    await expect(bobs.logIn(ada.key)).rejects.toThrow('no such credential');
    expect((await app.client().logIn(ada.key)).json.code).toBe('sign_in_required');
  });

  it('the enrollment of a key is a login with both', async () => {
    await reconcile();
    const { client, key } = await app.enrolled('new@enrolled-after.example');
    expect((await client.get('/v1/keys')).status).toBe(200);
    expect((await app.client().logIn(key)).status).toBe(200);
  });

  it('a leaver whose removal was undone gets nothing by session, key, token, certificate, pass or device code', async () => {
    const { admin, scim } = await foundOrganization(app, 'undone.example');
    const made = await scim('POST', '/Users', { userName: 'leaver@undone.example' });
    expect(made.status).toBe(201);
    const { client, key } = await app.enrolled('leaver@undone.example');
    const { serial } = (
      await client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() })
    ).json as { serial: string };
    const login = await fido2(key);
    const token = login.json.access_token as string;
    const device = await postForm(app, '/oauth/device', { client_id: 'svc-cli' });
    // The server lost the DELETE of this user with its audit event, so that nothing shows it.
    await reconcile();
    expect((await client.get('/v1/keys')).status).toBe(401);
    expect((await app.client().logIn(key)).status).toBe(403);
    expect((await fido2(key)).status).toBe(400);
    const bearer = { headers: { authorization: `Bearer ${token}` }, address: newAddress() };
    expect((await app.client().get('/v1/keys', bearer)).status).toBe(401);
    const state = await app.client().get(`/v1/credentials/ssh/krl/${serial}`);
    expect(state.json).toMatchObject({ revoked: true });
    const polled = await postForm(app, '/oauth/token', {
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      client_id: 'svc-cli',
      device_code: device.json.device_code,
    });
    expect(polled.json).toMatchObject({ error: 'invalid_grant' });
    expect((await admin.client.get('/v1/keys')).status).toBe(401);
  });
});
