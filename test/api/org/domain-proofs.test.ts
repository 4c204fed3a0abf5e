import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operatorDomains } from '../../../src/domain/admin/operator-access/compose-access.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
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
import { idOf, orgApi } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

let dns: DnsServer;
let app: TestApp;
/** Eve is the admin of an organization that has proven no domain by DNS. */
let eve: Client;
beforeAll(async () => {
  dns = await DnsServer.start();
  app = await startTestApp({
    modules: [dnsModule({ servers: [dns.address], deadline: 1500 })],
    furtherProviders: ['other'],
    environment: {
      SVC_SSH_PRINCIPALS: 'email,username',
      SVC_SSH_PRINCIPALS_DOMAIN: 'user-names.example',
    },
  });
  ({ client: eve } = await app.enrolled('eve@prover.example'));
});
afterAll(async () => {
  await app.close();
  await dns.close();
});

const OPERATOR = {
  name: 'olga',
  uid: 7,
  loginUid: undefined,
  claimedUser: undefined,
  host: 'here',
};
const operator = () => operatorDomains(app.dataSource);
const outcome = ({ status, json }: Answer) => [status, json?.code ?? json?.state];
/**
 * Returns the events that the removal of a domain writes, with the number of different requests of
 * all of them.
 */
const requestsOf = (domain: string) =>
  rows<{ type: string; by: string | null; requests: number }>(
    app.dataSource,
    `SELECT type, details ->> 'by' AS by, (SELECT count(DISTINCT request_id)::int FROM audit_events
       WHERE details ->> 'domain' = $1) AS requests
     FROM audit_events WHERE details ->> 'domain' = $1 ORDER BY type`,
    [domain],
  );
const certificate = (browser: Client, principals?: readonly string[]) =>
  browser.post(
    '/v1/credentials/ssh',
    { public_key: newPublicKeyLine(), principals },
    { address: newAddress() },
  );
const owners = (domain: string) =>
  rows<{ org_id: string }>(
    app.dataSource,
    'SELECT org_id FROM organization_domains WHERE domain = $1 AND verified_at IS NOT NULL',
    [domain],
  );
const orgOf = async (email: string) =>
  (
    await rows<{ org_id: string }>(app.dataSource, 'SELECT org_id FROM users WHERE email = $1', [
      email,
    ])
  )[0]?.org_id ?? '';

/**
 * Signs a user in at a provider and tries to enroll a key. Returns the refusal of the sign-in, or
 * the response to the enrollment.
 */
async function comes(email: string, provider = 'demo'): Promise<Answer> {
  const browser = app.client();
  const page = await browser.signIn(email, '/', provider);
  return page.status === 200 ? browser.enroll(app.newKey()) : page;
}

/** Publishes the DNS record of an organization's primary domain, and requests its verification. */
async function provesPrimary(admin: Client, domain: string): Promise<Answer> {
  const { record } = (await listed(admin, domain)) ?? {};
  dns.replies.set(record?.name ?? '', { texts: [record?.value ?? ''] });
  return verify(admin, domain);
}

describe('the domain of SVC_SSH_PRINCIPALS_DOMAIN', () => {
  it('takes the user names with it: certificates of people of other domains end too, if they carry one', async () => {
    await proven(eve, dns, 'user-names.example');
    const both = (await certificate(eve)).json as { serial: string; principals: string[] };
    expect(both.principals).toEqual(['eve@prover.example', 'eve']);
    const plain = (await certificate(eve, ['eve@prover.example'])).json as { serial: string };
    const { client: stranger } = await app.enrolled('ada@other-names.example');
    const theirs = (await certificate(stranger)).json as { serial: string; principals: string[] };
    expect(theirs.principals).toEqual(['ada@other-names.example']);

    expect((await removal(eve, 'user-names.example')).status).toBe(204);
    const isRevoked = async ({ serial }: { serial: string }) =>
      (await app.client().get(`/v1/credentials/ssh/krl/${serial}`)).json.revoked as boolean;
    expect(await isRevoked(both)).toBe(true);
    expect(await isRevoked(plain)).toBe(false);
    expect(await isRevoked(theirs)).toBe(false);
    expect((await auditOfDomain(app, 'user-names.example')).at(-1)).toMatchObject({
      type: 'org_domain_removed',
      details: { certificates: 1 },
    });
    const next = await certificate(eve);
    expect([next.status, next.json.principals]).toEqual([200, ['eve@prover.example']]);
  });
});

describe('a primary domain that a sign-in only asserted', () => {
  it('goes to the organization that proves it by DNS, and all that stood on it ends at once', async () => {
    const { client: squatter, key } = await app.enrolled('first@asserted.example');
    const { serial } = (await certificate(squatter)).json as { serial: string };
    const loser = await orgOf('first@asserted.example');
    await proven(eve, dns, 'asserted.example');
    expect((await squatter.get('/v1/keys')).status).toBe(401);
    const krl = await app.client().get(`/v1/credentials/ssh/krl/${serial}`);
    expect(krl.json.revoked).toBe(true);
    expect(outcome(await app.client().logIn(key))).toEqual([403, 'sign_in_refused']);
    expect(await owners('asserted.example')).toEqual([
      { org_id: await orgOf('eve@prover.example') },
    ]);
    const { client: newcomer } = await app.enrolled('second@asserted.example');
    expect((await certificate(newcomer)).status).toBe(200);
    expect(await orgOf('second@asserted.example')).toBe(await orgOf('eve@prover.example'));
    const losses = await rows<{ org_id: string; details: object }>(
      app.dataSource,
      `SELECT org_id, details FROM audit_events WHERE type = 'org_domain_unverified' AND org_id = $1`,
      [loser],
    );
    expect(losses).toEqual([
      {
        org_id: loser,
        details: expect.objectContaining({
          domain: 'asserted.example',
          taken_over: true,
          users: 1,
          sessions: 1,
          certificates: 1,
        }),
      },
    ]);
    expect(JSON.stringify(losses)).not.toContain('prover');
    // The next login of the same identity makes the user a member of the domain's owner, without
    // the earlier rights.
    const { client: again } = await app.enrolled('first@asserted.example');
    expect((await certificate(again)).status).toBe(200);
    expect(outcome(await orgApi(again, 'GET', '/members'))).toEqual([403, 'admin_required']);
    const members = await orgApi(eve, 'GET', '/members');
    expect(members.text).toContain('first@asserted.example');
  });

  it('is kept once its organization has proven it by DNS itself', async () => {
    const { client: ada } = await app.enrolled('ada@self-proven.example');
    expect(await listed(ada, 'self-proven.example')).toMatchObject({ proof: null });
    expect(outcome(await provesPrimary(ada, 'self-proven.example'))).toEqual([200, 'verified']);
    expect(await listed(ada, 'self-proven.example')).toMatchObject({ primary: true, proof: 'dns' });
    const { record } = await added(eve, 'self-proven.example');
    dns.replies.set(record.name, { texts: [record.value] });
    expect(outcome(await verify(eve, 'self-proven.example'))).toEqual([409, 'domain_taken']);
    expect((await certificate(ada)).status).toBe(200);
    await orgApi(eve, 'DELETE', '/domains/self-proven.example');
  });

  it('falls back to asserted after three checks without its record: its people keep access', async () => {
    const { client: ada } = await app.enrolled('ada@lapsing.example');
    const { record } = (await listed(ada, 'lapsing.example')) ?? {};
    await provesPrimary(ada, 'lapsing.example');
    dns.replies.delete(record?.name ?? '');
    for (let time = 0; time < 3; time += 1) await recheck(app, 'lapsing.example');
    expect(await listed(ada, 'lapsing.example')).toMatchObject({ state: 'verified', proof: null });
    expect((await certificate(ada)).status).toBe(200);
    await proven(eve, dns, 'lapsing.example');
    expect((await ada.get('/v1/keys')).status).toBe(401);
  });

  it('is proven back by its first organization once the other one has given it up', async () => {
    const { client: ada, key } = await app.enrolled('ada@returning.example');
    await rows(
      app.dataSource,
      `INSERT INTO organization_domains (org_id, domain, verified_at) SELECT org_id, 'returning-extra.example', now()
       FROM users WHERE email = 'ada@returning.example'`,
    );
    await rows(
      app.dataSource,
      `UPDATE users SET email = 'ada@returning-extra.example' WHERE email = 'ada@returning.example'`,
    );
    await proven(eve, dns, 'returning.example');
    expect(await listed(ada, 'returning.example')).toMatchObject({ state: 'unverified' });
    expect(outcome(await provesPrimary(ada, 'returning.example'))).toEqual([409, 'domain_taken']);
    await orgApi(eve, 'DELETE', '/domains/returning.example');
    expect(outcome(await verify(ada, 'returning.example'))).toEqual([200, 'verified']);
    expect((await app.client().logIn(key)).status).toBe(200);
  });

  it('20 at once: proofs, assignments and foundings leave one owner', async () => {
    const domain = 'crowded.example';
    const { client: zoe } = await app.enrolled('zoe@second-prover.example');
    const records = [(await added(eve, domain)).record, (await added(zoe, domain)).record];
    dns.replies.set(records[0]?.name ?? '', { texts: records.map(({ value }) => value) });
    const rival = await orgOf('zoe@second-prover.example');
    const assignment = { kind: 'assign', domain, orgId: rival, operator: OPERATOR } as const;
    const founders = await Promise.all(
      Array.from({ length: 7 }, async (_, n) => {
        const browser = app.client();
        await browser.signIn(`p${n}@${domain}`);
        return browser;
      }),
    );
    await Promise.all([
      ...Array.from({ length: 4 }, () => verify(eve, domain)),
      ...Array.from({ length: 4 }, () => verify(zoe, domain)),
      ...Array.from({ length: 5 }, () =>
        operator()
          .perform(assignment)
          .catch(() => undefined),
      ),
      ...founders.map((browser) => browser.enroll(app.newKey())),
    ]);
    const [owner, ...more] = await owners(domain);
    expect(more).toEqual([]);
    const gains = (await auditOfDomain(app, domain)).filter(
      ({ type }) => type === 'org_domain_verified' || type === 'domain_assigned',
    );
    expect(new Set([await orgOf('eve@prover.example'), rival]).has(owner?.org_id ?? '')).toBe(true);
    expect(gains.length).toBeGreaterThanOrEqual(1);
    const strangers = `sessions s JOIN users u ON u.id = s.user_id
      WHERE u.email LIKE '%@crowded.example' AND u.org_id IS DISTINCT FROM $1`;
    expect(await count(app.dataSource, strangers, [owner?.org_id])).toBe(0);
  });
});

describe('a subdomain of a proven domain', () => {
  it('is founded through a provider of its organization alone', async () => {
    const { client: ada } = await app.enrolled('ada@umbrella.example');
    await provesPrimary(ada, 'umbrella.example');
    const refused = await comes('bob@team.umbrella.example', 'other');
    expect(refused.status).toBe(403);
    expect(refused.text).toContain('has proven the domain above');
    expect(refused.text).not.toContain(await orgOf('ada@umbrella.example'));
    expect((await comes('bob@deep.team.umbrella.example', 'other')).status).toBe(403);
    expect(await owners('team.umbrella.example')).toEqual([]);
    expect((await comes('bob@team.umbrella.example')).status).toBe(200);
    expect(await owners('team.umbrella.example')).toHaveLength(1);
  });

  it('is not founded by a sign-in that came before the proof', async () => {
    const { client: ada } = await app.enrolled('ada@canopy.example');
    const early = app.client();
    expect((await early.signIn('bob@team.canopy.example', '/', 'other')).status).toBe(200);
    await provesPrimary(ada, 'canopy.example');
    expect(outcome(await early.enroll(app.newKey()))).toEqual([403, 'enrollment_refused']);
    expect(await owners('team.canopy.example')).toEqual([]);
  });

  it('is founded freely below a domain that is only asserted', async () => {
    await app.enrolled('ada@loose.example');
    expect((await comes('bob@team.loose.example', 'other')).status).toBe(200);
  });
});

describe('the operator', () => {
  it('assigns a domain: proven, not checked, and taken from an organization that only asserted it', async () => {
    const { client: squatter } = await app.enrolled('first@assigned.example');
    const orgId = await orgOf('eve@prover.example');
    const act = { kind: 'assign', domain: 'assigned.example', orgId, operator: OPERATOR } as const;
    expect(await operator().rehearse(act)).toMatchObject({ changed: true });
    expect((await squatter.get('/v1/keys')).status).toBe(200);
    expect(await operator().perform(act)).toMatchObject({ changed: true });
    expect((await squatter.get('/v1/keys')).status).toBe(401);
    expect(await listed(eve, 'assigned.example')).toMatchObject({
      state: 'verified',
      proof: 'operator',
      record: null,
    });
    expect(await operator().perform(act)).toMatchObject({ changed: false });
    await recheck(app, 'assigned.example');
    expect(await listed(eve, 'assigned.example')).toMatchObject({ proof: 'operator', failures: 0 });
    expect(
      (await auditOfDomain(app, 'assigned.example')).filter(
        ({ type }) => type === 'domain_assigned',
      ),
    ).toMatchObject([{ class: 'admin', actor: null, details: { by: 'operator', os_uid: 7 } }]);
  });

  it('is refused the assignment of a domain that another organization has proven', async () => {
    const { client: ada } = await app.enrolled('ada@guarded.example');
    await provesPrimary(ada, 'guarded.example');
    const orgId = await orgOf('eve@prover.example');
    const act = { kind: 'assign', domain: 'guarded.example', orgId, operator: OPERATOR } as const;
    await expect(operator().perform(act)).rejects.toMatchObject({ code: 'domain_taken' });
  });

  it('releases a domain: what stood on it ends, and the next sign-in founds an organization of its own', async () => {
    const { client: ada } = await app.enrolled('ada@released.example');
    const before = await orgOf('ada@released.example');
    const { serial } = (await certificate(ada)).json as { serial: string };
    const act = { kind: 'release', domain: 'released.example', orgId: null, operator: OPERATOR };
    expect(await operator().perform({ ...act, kind: 'release' })).toMatchObject({
      changed: true,
      ownerBefore: before,
      ended: { users: 1, sessions: 1, certificates: 1 },
    });
    expect((await ada.get('/v1/keys')).status).toBe(401);
    const krl = await app.client().get(`/v1/credentials/ssh/krl/${serial}`);
    expect(krl.json.revoked).toBe(true);
    expect(await auditOfDomain(app, 'released.example')).toMatchObject([
      { type: 'domain_released', details: { by: 'operator', users: 1, primary: true } },
    ]);
    expect(await requestsOf('released.example')).toEqual([
      { type: 'domain_released', by: 'operator', requests: 1 },
      { type: 'identity_unbound', by: 'operator', requests: 1 },
    ]);
    expect((await comes('bob@released.example')).status).toBe(200);
    expect(await orgOf('bob@released.example')).not.toBe(before);
    expect(await idOf(app, 'ada@released.example')).toBeTruthy();
  });

  it('releases a proven domain, which no sign-in founds again', async () => {
    await proven(eve, dns, 'given-back.example');
    const act = { domain: 'given-back.example', orgId: null, operator: OPERATOR } as const;
    await operator().perform({ ...act, kind: 'release' });
    expect(await listed(eve, 'given-back.example')).toBeUndefined();
    expect((await comes('ada@given-back.example')).status).toBe(403);
    await expect(operator().perform({ ...act, kind: 'release' })).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});
