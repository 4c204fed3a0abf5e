import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import type { Answer, Client } from '../../support/client.js';
import { newAddress } from '../../support/client.js';
import type { EnrolledUser } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { DnsServer } from '../../support/dns-server.js';
import {
  added,
  auditOfDomain,
  dnsModule,
  listed,
  proven,
  recheck,
  removal,
  verify,
} from '../../support/domains.js';
import { askToken, startGitHubApplication, type GitHubApplication } from '../../support/github.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { CALLBACK, newCodeFields, postForm } from '../../support/oauth-flow.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { enrollWith } from '../../support/passes.js';
import { count, rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

const CLIENT = {
  redirect_uris: [CALLBACK],
  grant_types: ['authorization_code'],
  token_endpoint_auth_method: 'client_secret_post',
};
const SERVICE = {
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
  token_endpoint_auth_method: 'client_secret_post',
};

let dns: DnsServer;
let running: GitHubApplication;
let admin: Client;
/**
 * The claims that the provider sends for a user in place of the usual ones, by the user's e-mail
 * address.
 */
const says = new Map<string, object>();
beforeAll(async () => {
  dns = await DnsServer.start();
  running = await startGitHubApplication({
    modules: [dnsModule({ servers: [dns.address], deadline: 1500 })],
    claims: (email) => says.get(email) ?? {},
  });
  admin = running.organization.admin.client;
});
afterAll(async () => {
  await running.close();
  await dns.close();
});

const certificate = (browser: Client) =>
  browser.post(
    '/v1/credentials/ssh',
    { public_key: newPublicKeyLine() },
    { address: newAddress() },
  );
const awsToken = (browser: Client) =>
  browser.post('/v1/credentials/aws/token', {}, { address: newAddress() });
const outcome = ({ status, json }: Answer) => [status, json?.code];

/**
 * Signs a user in and tries to enroll a key. Returns the refusal of the sign-in, or the response to
 * the enrollment.
 */
async function comesToEnroll(email: string): Promise<Answer> {
  const browser = running.app.client();
  const page = await browser.signIn(email);
  return page.status === 200 ? browser.enroll(running.app.newKey()) : page;
}

/** Registers an application. Returns the form fields that authenticate it. */
async function clientOf(owner: string, metadata: Readonly<Record<string, unknown>>) {
  const { clientId, clientSecret } = await addApplication(running.app, metadata, { owner });
  return { client_id: clientId, client_secret: clientSecret };
}

const isActive = async (token: string, client: Record<string, string>) =>
  (await postForm(running.app, '/oauth/introspect', { token, ...client })).json.active as boolean;

/** A user of a domain with a credential of each kind, and an application that the user owns. */
interface Held {
  readonly user: EnrolledUser & { readonly id: string };
  readonly email: string;
  readonly serial: string;
  readonly accessToken: string;
  readonly serviceToken: string;
  /** Returns true once GitHub has revoked the token of the user. */
  readonly isRevokedAtGitHub: () => boolean;
  readonly client: Record<string, string>;
  readonly service: Record<string, string>;
}

async function holdingAll(domain: string): Promise<Held> {
  const email = `dev@${domain}`;
  const user = await running.member(email);
  const { serial } = (await certificate(user.client)).json as { serial: string };
  expect((await awsToken(user.client)).status).toBe(200);
  expect((await askToken(user.client)).status).toBe(200);
  const github = running.github.state.tokens.at(-1);
  const client = await clientOf('admin@octo.example', CLIENT);
  const fields = { ...(await newCodeFields(user.client, client.client_id)), ...client };
  const { access_token: accessToken } = (await postForm(running.app, '/oauth/token', fields)).json;
  const service = await clientOf(email, SERVICE);
  const grant = { grant_type: 'client_credentials', ...service };
  const { access_token: serviceToken } = (await postForm(running.app, '/oauth/token', grant)).json;
  expect(await isActive(accessToken as string, client)).toBe(true);
  expect(await isActive(serviceToken as string, service)).toBe(true);
  const isRevokedAtGitHub = () => github?.revoked === true;
  return { user, email, serial, accessToken, serviceToken, isRevokedAtGitHub, client, service };
}

/**
 * Checks that all credentials of a user have ended, and that the user gets none, even after a new
 * login.
 */
async function expectNothing(held: Held): Promise<void> {
  const { user, email, serial, accessToken, serviceToken, client, service } = held;
  const { app } = running;
  expect(await isActive(accessToken, client)).toBe(false);
  expect(await isActive(serviceToken, service)).toBe(false);
  expect((await user.client.get('/v1/keys')).status).toBe(401);
  const krl = await app.client().get(`/v1/credentials/ssh/krl/${serial}`);
  expect(krl.json.revoked).toBe(true);
  expect(await count(app.dataSource, 'oauth_grants WHERE user_id = $1', [user.id])).toBe(0);
  await expect.poll(held.isRevokedAtGitHub, { timeout: 90_000 }).toBe(true);
  const browser = app.client();
  await browser.signIn(email);
  await browser.logIn(user.key);
  expect(outcome(await certificate(browser))).toEqual([403, 'issuance_refused']);
  expect((await awsToken(browser)).status).toBe(403);
  expect((await askToken(browser)).status).toBe(403);
  const grant = { grant_type: 'client_credentials', ...service };
  expect((await postForm(app, '/oauth/token', grant)).status).toBe(400);
  expect(await count(app.dataSource, 'oauth_grants WHERE user_id = $1', [user.id])).toBe(0);
  expect(await count(app.dataSource, 'authenticators WHERE user_id = $1', [user.id])).toBe(1);
}

/** Makes a user without an organization, who has a key, with an e-mail address in a domain. */
async function outsiderOf(domain: string) {
  const { app } = running;
  const email = `solo@${domain}`;
  const { key } = await app.enrolled(email);
  const id = await idOf(app, email);
  await rows(app.dataSource, 'UPDATE users SET org_id = NULL, is_org_admin = false WHERE id = $1', [
    id,
  ]);
  await rows(app.dataSource, 'DELETE FROM organizations WHERE name = $1', [domain]);
  return { email, id, key };
}

describe('a user in a domain that is not proven', () => {
  it('is provisioned by SCIM, and enrolls as soon as the domain is verified, with no other act', async () => {
    const { scim } = running.organization;
    const made = await scim('POST', '/Users', { userName: 'grace@soon.example' });
    expect(made.status).toBe(201);
    const { record } = await added(admin, 'soon.example');
    const id = made.json.id as string;
    const keys = () => count(running.app.dataSource, 'authenticators WHERE user_id = $1', [id]);
    dns.replies.set(record.name, { texts: [record.value] });
    expect((await verify(admin, 'soon.example')).status).toBe(200);
    const { client } = await running.app.enrolled('grace@soon.example');
    expect(await keys()).toBe(1);
    expect((await certificate(client)).json.principals).toEqual(['grace@soon.example']);
    await removal(admin, 'soon.example');
    const seen = (await scim('GET', `/Users/${id}`)).json;
    expect([seen.userName, seen.active]).toEqual(['grace@soon.example', true]);
  });

  it('joins the organization at the first sign-in once the domain is verified, and founds none', async () => {
    const { client: ada } = await running.app.enrolled('ada@open.example');
    await proven(ada, dns, 'open-extra.example');
    const { client: bob } = await running.app.enrolled('bob@open-extra.example');
    const [row] = await rows(
      running.app.dataSource,
      `SELECT b.is_org_admin, b.org_id = a.org_id AS same FROM users a, users b
       WHERE a.email = 'ada@open.example' AND b.email = 'bob@open-extra.example'`,
    );
    expect(row).toEqual({ is_org_admin: false, same: true });
    expect((await orgApi(bob, 'GET', '/domains')).status).toBe(403);
  });

  it('does not join a scim_only organization by signing in', async () => {
    await proven(admin, dns, 'closed.example');
    const answer = await comesToEnroll('stranger@closed.example');
    expect(answer.status).toBe(403);
    expect(await count(running.app.dataSource, `users WHERE email LIKE '%@closed.example'`)).toBe(
      0,
    );
  });

  it('keeps the old address when the provider states one of a domain that is only pending', async () => {
    const { client: ada } = await running.app.enrolled('ada@moves.example');
    const { record } = await added(ada, 'moves-extra.example');
    says.set('ada@moves.example', { email: 'ada@moves-extra.example' });
    await running.app.client().signIn('ada@moves.example');
    const now = () =>
      count(running.app.dataSource, `users WHERE email = 'ada@moves-extra.example'`);
    expect(await now()).toBe(0);
    dns.replies.set(record.name, { texts: [record.value] });
    await verify(ada, 'moves-extra.example');
    await running.app.client().signIn('ada@moves.example');
    expect(await now()).toBe(1);
  });

  it('without an organization loses what the user held, once an organization proves the domain', async () => {
    const { app } = running;
    const { client } = await app.enrolled('solo@claimed.example');
    await rows(
      app.dataSource,
      `UPDATE users SET org_id = NULL, is_org_admin = false WHERE email = 'solo@claimed.example'`,
    );
    await rows(app.dataSource, `DELETE FROM organizations WHERE name = 'claimed.example'`);
    const { serial } = (await certificate(client)).json as { serial: string };
    const { client: ada } = await app.enrolled('ada@claims.example');
    await proven(ada, dns, 'claimed.example');
    expect((await client.get('/v1/keys')).status).toBe(401);
    expect((await app.client().get(`/v1/credentials/ssh/krl/${serial}`)).json.revoked).toBe(true);
    await removal(ada, 'claimed.example');
    const browser = app.client();
    await browser.signIn('solo@claimed.example');
    expect((await certificate(browser)).status).toBe(403);
  });
});

describe('a user without an organization, once an organization owns the domain', () => {
  it('joins the organization at the next sign-in if it accepts the provider, and keeps no rights', async () => {
    const { app } = running;
    const { client: ada } = await app.enrolled('ada@adopts.example');
    const outsider = await outsiderOf('adopted.example');
    await proven(ada, dns, 'adopted.example');
    const browser = app.client();
    await browser.signIn(outsider.email);
    expect((await browser.enroll(app.newKey())).status).toBe(200);
    expect((await certificate(browser)).status).toBe(200);
    const joined = await rows<{ id: string }>(
      app.dataSource,
      `SELECT u.id FROM users u JOIN users a ON a.org_id = u.org_id
       WHERE a.email = 'ada@adopts.example' AND u.email = $1 AND NOT u.is_org_admin`,
      [outsider.email],
    );
    expect(joined).toHaveLength(1);
    expect(joined[0]?.id).not.toBe(outsider.id);
    const unbound = await rows(
      app.dataSource,
      `SELECT org_id, details ->> 'domain' AS domain FROM audit_events WHERE type = 'identity_unbound' AND subject_id = $1`,
      [outsider.id],
    );
    expect(unbound).toEqual([{ org_id: null, domain: 'adopted.example' }]);
  });

  it('stays as before, with nothing, if the organization refuses the sign-in', async () => {
    const { app } = running;
    const outsider = await outsiderOf('unadopted.example');
    await proven(admin, dns, 'unadopted.example'); // its members come from SCIM alone
    const browser = app.client();
    await browser.signIn(outsider.email);
    expect((await browser.logIn(outsider.key)).status).toBe(200);
    expect(outcome(await certificate(browser))).toEqual([403, 'issuance_refused']);
    expect(await count(app.dataSource, 'identities WHERE user_id = $1', [outsider.id])).toBe(1);
    const made = await running.organization.scim('POST', '/Users', { userName: outsider.email });
    await app.client().signIn(outsider.email);
    const bound = await count(app.dataSource, 'identities WHERE user_id = $1', [made.json.id]);
    expect(bound).toBe(1);
  });
});

describe('the old account of a user who may join an organization', () => {
  const signsIn = async (email: string) => {
    const browser = running.app.client();
    const page = await browser.signIn(email);
    return { browser, page };
  };
  const identitiesOf = (id: string) =>
    count(running.app.dataSource, 'identities WHERE user_id = $1', [id]);

  it('keeps its demand for a pass: without the pass the user neither joins nor enrolls', async () => {
    const { app } = running;
    const { client: ada } = await app.enrolled('ada@demands.example');
    const outsider = await outsiderOf('demanded.example');
    await proven(ada, dns, 'demanded.example');
    await rows(
      app.dataSource,
      `INSERT INTO enrollment_passes (user_id, hash, expires_at) VALUES ($1, $2, now() + interval '1 day')`,
      [outsider.id, hashOpaqueToken('secret')],
    );
    await rows(app.dataSource, 'DELETE FROM authenticators WHERE user_id = $1', [outsider.id]);
    const thief = await signsIn(outsider.email);
    const refusal = await enrollWith(app, thief.browser, app.newKey());
    expect(outcome(refusal)).toEqual([403, 'enrollment_pass_required']);
    expect(await identitiesOf(outsider.id)).toBe(1);
    await rows(app.dataSource, 'DELETE FROM enrollment_passes WHERE user_id = $1', [outsider.id]);
    await signsIn(outsider.email);
    expect(await identitiesOf(outsider.id)).toBe(0);
  });

  it('stays deactivated: the user does not sign in', async () => {
    const { app } = running;
    const { client: ada } = await app.enrolled('ada@inactive-adopts.example');
    const outsider = await outsiderOf('inactive-adopted.example');
    await proven(ada, dns, 'inactive-adopted.example');
    await rows(app.dataSource, 'UPDATE users SET active = false WHERE id = $1', [outsider.id]);
    expect((await signsIn(outsider.email)).page.status).toBe(403);
    expect(await identitiesOf(outsider.id)).toBe(1);
  });

  it('stays bound if the enrollment would refuse the identity, as for a private account', async () => {
    const { app } = running;
    await app.enrolled('ada@mail-service.example');
    const { key } = await app.enrolled('solo@posteo.de');
    const id = await idOf(app, 'solo@posteo.de');
    await rows(
      app.dataSource,
      `INSERT INTO organization_domains (org_id, domain, is_primary, verified_at, token, assigned_at)
       SELECT org_id, 'posteo.de', false, now(), 'token', now() FROM users WHERE email = 'ada@mail-service.example'`,
    );
    const { browser } = await signsIn('solo@posteo.de');
    expect((await browser.logIn(key)).status).toBe(200);
    expect(await identitiesOf(id)).toBe(1);
  });

  it('moves once if the user signs in 10 times at once, to the record that SCIM made', async () => {
    const { app } = running;
    const outsider = await outsiderOf('at-once.example');
    await proven(admin, dns, 'at-once.example');
    const made = await running.organization.scim('POST', '/Users', { userName: outsider.email });
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => app.client().signIn(outsider.email)),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(await identitiesOf(outsider.id)).toBe(0);
    expect(await identitiesOf(made.json.id as string)).toBe(1);
    const unbound = "audit_events WHERE type = 'identity_unbound' AND subject_id = $1";
    expect(await count(app.dataSource, unbound, [outsider.id])).toBe(1);
  });

  it('ends with the move: its sessions end, and its key logs in to nothing', async () => {
    const { app } = running;
    const { client: ada } = await app.enrolled('ada@ends-old.example');
    const outsider = await outsiderOf('ended-old.example');
    await proven(ada, dns, 'ended-old.example');
    const other = app.client();
    expect((await other.logIn(outsider.key)).status).toBe(200);
    expect((await other.get('/v1/keys')).status).toBe(200);
    await signsIn(outsider.email);
    expect((await other.get('/v1/keys')).status).toBe(401);
    const late = await app.client().logIn(outsider.key);
    expect([late.status, late.json.code]).toEqual([403, 'sign_in_refused']);
  });
});

describe('people of a removed domain', () => {
  it('are issued nothing: SSH, AWS, GitHub, OIDC, tokens of their applications, enrollment', async () => {
    await proven(admin, dns, 'removed.example');
    const held = await holdingAll('removed.example');
    const colleague = await running.member('colleague@octo.example');
    expect((await removal(admin, 'removed.example')).status).toBe(204);
    await expectNothing(held);
    const provisioned = await running.organization.scim('POST', '/Users', {
      userName: 'late@removed.example',
    });
    expect(provisioned.status).toBe(201);
    expect((await comesToEnroll('late@removed.example')).status).toBe(403);
    expect((await certificate(colleague.client)).status).toBe(200);
    expect((await orgApi(admin, 'GET', '/members')).text).toContain(held.email);
  });

  it('lose everything in one transaction, which the audit log counts and names the admin', async () => {
    await proven(admin, dns, 'counted.example');
    await holdingAll('counted.example');
    await removal(admin, 'counted.example');
    expect((await auditOfDomain(running.app, 'counted.example')).at(-1)).toEqual({
      type: 'org_domain_removed',
      class: 'admin',
      actor: 'admin@octo.example',
      details: {
        domain: 'counted.example',
        from: 'verified',
        users: 1,
        sessions: expect.any(Number),
        grants: 1,
        tokens: 2,
        certificates: 1,
        github_tokens: 1,
      },
    });
    const [row] = await rows(
      running.app.dataSource,
      `SELECT revoke_reason, revoked_by FROM ssh_certificates c JOIN users u ON u.id = c.user_id
       WHERE u.email = 'dev@counted.example'`,
    );
    expect(row).toEqual({
      revoke_reason: 'domain removed',
      revoked_by: await idOf(running.app, 'admin@octo.example'),
    });
  });

  it('are let in again, with the same accounts and keys, once the domain is proven again', async () => {
    await proven(admin, dns, 'returns.example');
    const { user, email } = await holdingAll('returns.example');
    await removal(admin, 'returns.example');
    await proven(admin, dns, 'returns.example');
    const browser = running.app.client();
    await browser.signIn(email);
    expect((await browser.logIn(user.key)).status).toBe(200);
    expect((await certificate(browser)).status).toBe(200);
    expect(await idOf(running.app, email)).toBe(user.id);
  });

  it('cannot found an organization for it: only a proof by DNS gives it away again', async () => {
    const { app } = running;
    await proven(admin, dns, 'orphan.example');
    await removal(admin, 'orphan.example');
    expect((await comesToEnroll('first@orphan.example')).status).toBe(403);
    expect(await count(app.dataSource, `organizations WHERE name = 'orphan.example'`)).toBe(0);
    const { client: eve } = await app.enrolled('eve@heirs.example');
    await proven(eve, dns, 'orphan.example');
    const { client } = await app.enrolled('first@orphan.example');
    expect((await certificate(client)).status).toBe(200);
  });

  it('stay in their organization, with nothing, when another organization proves the domain', async () => {
    const { app } = running;
    await proven(admin, dns, 'moved-away.example');
    const held = await holdingAll('moved-away.example');
    await removal(admin, 'moved-away.example');
    const { client: eve } = await app.enrolled('eve@buyers.example');
    await proven(eve, dns, 'moved-away.example');
    await expectNothing(held);
    const domains = (await orgApi(eve, 'GET', '/members')).text;
    expect(domains).not.toContain(held.email);
    const seen = await running.organization.scim('GET', `/Users/${held.user.id}`);
    expect(seen.json.userName).toBe(held.email);
  });

  it('get no token for an application whose request waited while the domain was removed', async () => {
    const { app } = running;
    await proven(admin, dns, 'waiting.example');
    await running.member('owner@waiting.example');
    const service = await clientOf('owner@waiting.example', SERVICE);
    const id = await idOf(app, 'owner@waiting.example');
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [id]);
    const asked = postForm(app, '/oauth/token', { grant_type: 'client_credentials', ...service });
    await untilWaiting(app.dataSource, 1);
    await holder.query(`DELETE FROM organization_domains WHERE domain = 'waiting.example'`);
    await holder.commitTransaction();
    await holder.release();
    expect((await asked).status).toBe(400);
    const tokens = `oauth_artifacts WHERE client_id = $1 AND model = 'ClientCredentials'`;
    expect(await count(app.dataSource, tokens, [service.client_id])).toBe(0);
  });

  it('who enroll while it is removed are refused, or lose the session: none keeps access', async () => {
    const { app } = running;
    const { client: ada } = await app.enrolled('ada@enrolling.example');
    await proven(ada, dns, 'enrolling-extra.example');
    const browsers = await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        const browser = app.client();
        await browser.signIn(`p${n}@enrolling-extra.example`);
        return browser;
      }),
    );
    const enrollments = browsers.map((browser) => browser.enroll(app.newKey()));
    const [removed] = await Promise.all([removal(ada, 'enrolling-extra.example'), ...enrollments]);
    expect(removed.status).toBe(204);
    for (const browser of browsers) expect((await certificate(browser)).status).not.toBe(200);
    const live = `sessions s JOIN users u ON u.id = s.user_id WHERE u.email LIKE '%@enrolling-extra.example'`;
    expect(await count(app.dataSource, live)).toBe(0);
  });

  it('who are 1,200 lose their sessions and certificates in one transaction', async () => {
    const { app } = running;
    await proven(admin, dns, 'large.example');
    await rows(
      app.dataSource,
      `WITH made AS (
         INSERT INTO users (id, org_id, email, scim_managed)
         SELECT gen_random_uuid(), o.org_id, 'p' || n || '@large.example', true
         FROM generate_series(1, 1200) n, organization_domains o WHERE o.domain = 'large.example' RETURNING id)
       INSERT INTO sessions (id, token_hash, level, user_id, expires_at)
       SELECT gen_random_uuid(), sha256(id::text::bytea), 'bootstrap', id, now() + interval '1 hour' FROM made`,
    );
    // The first user has 25 certificates: more than one statement revokes for each of many users.
    await rows(
      app.dataSource,
      `INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint, valid_after, valid_before)
       SELECT 1000 + row_number() over (), u.id, u.id, u.email, ARRAY[u.email], 'x', 'x', now(), now() + interval '1 hour'
       FROM users u, generate_series(1, CASE u.email WHEN 'p1@large.example' THEN 25 ELSE 1 END)
       WHERE u.email LIKE '%@large.example'`,
    );
    expect((await removal(admin, 'large.example')).status).toBe(204);
    const left = `ssh_certificates WHERE key_id LIKE '%@large.example' AND revoked_at IS NULL`;
    expect(await count(app.dataSource, left)).toBe(0);
    expect((await auditOfDomain(app, 'large.example')).at(-1)?.details).toMatchObject({
      users: 1200,
      sessions: 1200,
      certificates: 1224,
    });
  });
});

describe('people of a domain whose record is gone', () => {
  it('keep their access for two failures, and are issued nothing from the third on', async () => {
    const { app } = running;
    const record = await proven(admin, dns, 'failing.example');
    const held = await holdingAll('failing.example');
    dns.replies.delete(record.name);
    for (const failures of [1, 2]) {
      await recheck(app, 'failing.example');
      expect(await listed(admin, 'failing.example')).toMatchObject({ state: 'failing', failures });
      expect((await certificate(held.user.client)).status).toBe(200);
    }
    await recheck(app, 'failing.example');
    expect(await listed(admin, 'failing.example')).toMatchObject({
      state: 'unverified',
      failures: 3,
      verified_at: null,
    });
    await expectNothing(held);
    expect((await auditOfDomain(app, 'failing.example')).at(-1)).toEqual({
      type: 'org_domain_unverified',
      class: 'admin',
      actor: null,
      details: expect.objectContaining({ domain: 'failing.example', failures: 3, users: 1 }),
    });
    const lines = app.log.filter((line) => line.includes('"context":"security"'));
    expect(lines.some((line) => line.includes('a domain is unverified'))).toBe(true);
    dns.replies.set(record.name, { texts: [record.value] });
    expect((await verify(admin, 'failing.example')).json).toMatchObject({
      state: 'verified',
      failures: 0,
      record,
    });
    const browser = app.client();
    await browser.signIn(held.email);
    await browser.logIn(held.user.key);
    expect((await certificate(browser)).status).toBe(200);
  });
});
