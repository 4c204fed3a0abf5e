import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { count, rows } from '../support/rows.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

describe('identity at a sign-in', () => {
  let app: TestApp;
  /**
   * The claims that the provider sends for a user in place of the usual ones, by the user's e-mail
   * address. A test sets them before a sign-in.
   */
  const says = new Map<string, object>();
  beforeAll(async () => {
    app = await startTestApp({ claims: (email) => says.get(email) ?? {} });
  });
  afterAll(() => app.close());

  const orgOf = async (domain: string) => {
    const [row] = await rows<{ org_id: string }>(
      app.dataSource,
      'SELECT org_id FROM organization_domains WHERE domain = $1',
      [domain],
    );
    return row?.org_id ?? '';
  };
  /** Inserts a member like one that SCIM created: without an identity and a key. Returns the id. */
  const provision = async (email: string, orgId: string) => {
    const id = randomUUID();
    await app.dataSource.query(
      'INSERT INTO users (id, org_id, email, scim_managed) VALUES ($1, $2, $3, true)',
      [id, orgId, email],
    );
    return id;
  };

  it('a bound identity is the same user again', async () => {
    const { client } = await app.enrolled('again@acme.example');
    await client.post('/logout');
    const page = await client.signIn('again@acme.example');
    expect(page.url.pathname).toBe('/login');
    expect(await count(app.dataSource, "users WHERE email = 'again@acme.example'")).toBe(1);
  });

  it('an unbound member is bound by the first sign-in, and enrolls as that member', async () => {
    await app.enrolled('founder@scim.example');
    const id = await provision('member@scim.example', await orgOf('scim.example'));
    const client = app.client();
    const page = await client.signIn('Member@SCIM.example');
    expect(page.url.pathname).toBe('/enroll');
    expect(await count(app.dataSource, 'identities WHERE user_id = $1', [id])).toBe(1);
    expect((await client.enroll(app.newKey())).status).toBe(200);
    expect(await count(app.dataSource, 'authenticators WHERE user_id = $1', [id])).toBe(1);
    const issued = await client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    expect(issued.json.principals).toEqual(['member@scim.example']);
  });

  it('20 sign-ins of one unbound member at once bind it once', async () => {
    await app.enrolled('founder@bind.example');
    const id = await provision('race@bind.example', await orgOf('bind.example'));
    const pages = await Promise.all(
      Array.from({ length: 20 }, () => app.client().signIn('race@bind.example')),
    );
    expect(pages.every(({ status }) => status === 200)).toBe(true);
    expect(await count(app.dataSource, 'identities WHERE user_id = $1', [id])).toBe(1);
    expect(
      await count(
        app.dataSource,
        "audit_events WHERE type = 'identity_bound' AND subject_id = $1",
        [id],
      ),
    ).toBe(1);
  });

  it('two identities that claim one e-mail at once: one is bound, the other is refused', async () => {
    await app.enrolled('founder@claim.example');
    const id = await provision('wanted@claim.example', await orgOf('claim.example'));
    const claimants = ['real@claim.example', 'false@claim.example'];
    for (const email of claimants) says.set(email, { email: 'wanted@claim.example' });
    const pages = await Promise.all(claimants.map((email) => app.client().signIn(email)));
    expect(pages.map(({ status }) => status).toSorted()).toEqual([200, 403]);
    expect(await count(app.dataSource, 'identities WHERE user_id = $1', [id])).toBe(1);
  });

  it('a member bound to another sign-in is not taken over by an identity with the same e-mail', async () => {
    await app.enrolled('founder@taken.example');
    const id = await provision('member@taken.example', await orgOf('taken.example'));
    await app.dataSource.query(
      "INSERT INTO identities (issuer, subject, user_id) VALUES ('https://elsewhere.example', 'x', $1)",
      [id],
    );
    const page = await app.client().signIn('member@taken.example');
    expect(page.status).toBe(403);
    expect(
      await count(
        app.dataSource,
        "audit_events WHERE type = 'identity_bind_refused' AND subject_id = $1",
        [id],
      ),
    ).toBe(1);
  });

  it('"an organization\'s members cannot come through a provider that it does not accept"', async () => {
    await app.enrolled('founder@strict.example');
    await app.dataSource.query(
      "UPDATE organization_providers SET issuer = 'https://other-idp.example' WHERE org_id = $1",
      [await orgOf('strict.example')],
    );
    const page = await app.client().signIn('newcomer@strict.example');
    expect(page.status).toBe(403);
    expect(page.text).toContain('does not accept sign-ins through this identity provider');
    expect(await count(app.dataSource, "users WHERE email = 'newcomer@strict.example'")).toBe(0);
  });

  it('in a provisioned organization no sign-in creates a user, even one that began before', async () => {
    const { client: founder } = await app.enrolled('founder@prov.example');
    const early = app.client();
    await early.signIn('early@prov.example');
    const start = (await early.post('/enroll/webauthn/start', {})).json;
    await app.dataSource.query("UPDATE organizations SET membership = 'scim_only' WHERE id = $1", [
      await orgOf('prov.example'),
    ]);
    const completed = await early.post('/enroll/webauthn/complete', {
      state: start.state,
      credential: app.newKey().create(start.publicKey, app.baseUrl),
    });
    expect([completed.status, completed.json.code]).toEqual([403, 'enrollment_refused']);
    const late = await app.client().signIn('late@prov.example');
    expect(late.status).toBe(403);
    expect(await count(app.dataSource, "users WHERE email LIKE '%@prov.example'")).toBe(1);
    expect((await founder.get('/v1/keys')).status).toBe(200);
  });

  it('a member of an unproven domain cannot enroll', async () => {
    await app.enrolled('founder@proven.example');
    const id = await provision('member@unproven.example', await orgOf('proven.example'));
    const client = app.client();
    await client.signIn('other@proven.example');
    await app.dataSource.query(
      'UPDATE sessions SET user_id = $1, pending_identity = NULL WHERE pending_identity IS NOT NULL',
      [id],
    );
    const answer = await client.enroll(app.newKey());
    expect([answer.status, answer.json.code]).toEqual([403, 'enrollment_refused']);
    expect(await count(app.dataSource, 'authenticators WHERE user_id = $1', [id])).toBe(0);
  });

  it('an unverified e-mail address identifies no user', async () => {
    says.set('unverified@acme.example', { email_verified: false });
    const page = await app.client().signIn('unverified@acme.example');
    expect(page.status).toBe(403);
    expect(page.text).toContain('not verified');
  });

  it('"a new e-mail in the organization\'s own domain is followed, and access issued under the old one ends"', async () => {
    const { client } = await app.enrolled('maiden@rename.example');
    const issued = await client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    expect(issued.status).toBe(200);
    says.set('maiden@rename.example', { email: 'married@rename.example' });
    const later = app.client();
    await later.signIn('maiden@rename.example');
    expect((await client.get('/v1/keys')).status).toBe(401);
    expect(
      await rows(
        app.dataSource,
        'SELECT revoked_by, revoke_reason FROM ssh_certificates WHERE serial = $1',
        [issued.json.serial],
      ),
    ).toEqual([{ revoked_by: 'upstream', revoke_reason: 'e-mail changed' }]);
    expect(await count(app.dataSource, "users WHERE email = 'married@rename.example'")).toBe(1);
  });

  it('a new e-mail in a foreign domain, a taken one, or one of a SCIM user is not followed', async () => {
    await app.enrolled('taken@keep.example');
    for (const [email, claimed] of [
      ['foreign@keep.example', 'foreign@elsewhere.example'],
      ['double@keep.example', 'taken@keep.example'],
    ] as const) {
      const { client } = await app.enrolled(email);
      says.set(email, { email: claimed });
      await app.client().signIn(email);
      expect(await count(app.dataSource, 'users WHERE email = $1', [email])).toBe(1);
      expect((await client.get('/v1/keys')).status).toBe(200);
    }
    await app.enrolled('managed@keep.example');
    await app.dataSource.query(
      "UPDATE users SET scim_managed = true WHERE email = 'managed@keep.example'",
    );
    says.set('managed@keep.example', { email: 'renamed@keep.example' });
    await app.client().signIn('managed@keep.example');
    expect(await count(app.dataSource, "users WHERE email = 'managed@keep.example'")).toBe(1);
  });

  it('signing in ends the earlier session of the browser', async () => {
    const { client } = await app.enrolled('switch@acme.example');
    const token = client.cookie('svc_session') ?? '';
    await client.signIn('somebody-else@acme.example');
    const old = app.client();
    old.setCookie('svc_session', token);
    expect((await old.get('/v1/keys')).status).toBe(401);
  });

  it('the state of a sign-in is refused twice, and from another browser', async () => {
    const client = app.client();
    const away = await client.get('/login?provider=demo&login_hint=state@acme.example');
    let url = new URL(away.headers.get('location') ?? '');
    while (url.origin !== app.baseUrl) {
      const hop = await client.get(url.href);
      url = new URL(hop.headers.get('location') ?? '', url);
    }
    const thief = app.client();
    await thief.post('/login/webauthn/start', {});
    const stolen = await thief.get(url.href);
    expect(stolen.status).toBe(400);
    expect(thief.cookie('svc_session')).toBeUndefined();
    expect((await client.get(url.href)).status).toBe(303);
    const again = await client.get(url.href);
    expect(again.status).toBe(400);
    expect(again.headers.get('content-type')).toContain('text/html');
  });

  it('an unknown provider is a 404 page', async () => {
    const page = await app.client().get('/login?provider=nobody');
    expect(page.status).toBe(404);
    expect(page.headers.get('content-type')).toContain('text/html');
  });
});
