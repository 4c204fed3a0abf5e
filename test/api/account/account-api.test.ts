import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listOwnApplications } from '#domain/account/own-applications.repository.js';
import { operatorDetails } from '#domain/admin/operator-access/operator.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { OauthRows, type UserRow } from '../../support/oauth-rows.js';
import { postForm } from '../../support/oauth-flow.js';
import { addMember, idOf, orgApi } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

let app: TestApp;
let oauth: OauthRows;
beforeAll(async () => {
  app = await startTestApp();
  oauth = new OauthRows(app.dataSource);
});
afterAll(() => app.close());

let people = 0;

/**
 * Creates a user with a key and a session. Without an address, the user is the first of a new
 * organization.
 */
async function newUser(email?: string) {
  people += 1;
  const address = email ?? `ada@account-${people}.example`;
  const { client, key } = await app.enrolled(address);
  const id = await idOf(app, address);
  const [own] = await rows<{ key_id: string; org_id: string | null; session_id: string }>(
    app.dataSource,
    `SELECT s.authenticator_id AS key_id, u.org_id, s.id AS session_id
     FROM sessions s JOIN users u ON u.id = s.user_id WHERE u.id = $1 AND s.level = 'verified'`,
    [id],
  );
  const row: UserRow = {
    id,
    email: address,
    orgId: own?.org_id ?? null,
    keyId: own?.key_id ?? '',
  };
  const session = { id: own?.session_id ?? '', token: '' };
  return { id, email: address, client, key, row, session };
}

const call = (browser: Client, method: string, path: string): Promise<Answer> =>
  browser.send(method, `/v1/${path}`, { address: newAddress() });
const read = async (browser: Client, path: string) => {
  const answer = await call(browser, 'GET', path);
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return answer.json;
};
const certificate = async (browser: Client): Promise<string> => {
  const body = { public_key: newPublicKeyLine() };
  const answer = await browser.post('/v1/credentials/ssh', body, { address: newAddress() });
  expect(answer.status).toBe(200);
  return answer.json.serial as string;
};
const events = (type: string, userId: string) =>
  rows<{ details: Record<string, unknown> }>(
    app.dataSource,
    'SELECT details FROM audit_events WHERE type = $1 AND subject_id = $2 AND actor_id = $2',
    [type, userId],
  );
const times20 = <Result>(act: () => Promise<Result>): Promise<Result[]> =>
  Promise.all(Array.from({ length: 20 }, act));
const oneOf20 = (winner: number, loser: number) => [
  winner,
  ...Array.from({ length: 19 }, () => loser),
];

describe('GET /v1/account/credentials', () => {
  it('lists what was issued in the name of the user, the newest first, and of no other user', async () => {
    const { client, row, session } = await newUser();
    const { client: other } = await newUser();
    await certificate(other);
    const serial = await certificate(client);
    await client.post('/v1/credentials/aws/token', {
      role_arn: 'arn:aws:iam::123456789012:role/deploy',
    });
    await issuedToken(row, session.id);
    const { credentials, next } = await read(client, 'account/credentials');
    expect(
      credentials.map(({ kind, target }: { kind: string; target: string }) => [kind, target]),
    ).toEqual([
      ['oidc', 'openid'],
      ['aws', 'arn:aws:iam::123456789012:role/deploy'],
      ['ssh', null],
    ]);
    expect(next).toBeNull();
    expect(credentials[2]).toMatchObject({
      serial,
      principals: [row.email],
      revoked_at: null,
      address: expect.any(String),
      request_id: expect.any(String),
      valid_until: expect.stringMatching(/Z$/),
    });
  });

  it('pages by cursor, and shows each credential once while new ones are issued', async () => {
    const { client } = await newUser();
    const issued: string[] = [];
    for (let n = 0; n < 5; n += 1) issued.unshift(await certificate(client));
    const seen: string[] = [];
    let path = 'account/credentials?limit=2';
    for (;;) {
      const { credentials, next } = await read(client, path);
      seen.push(...credentials.map((each: { serial: string }) => each.serial));
      await certificate(client);
      if (next === null) break;
      path = `account/credentials?limit=2&after=${next}`;
    }
    expect(seen).toEqual(issued);
  });

  it.each(['limit=0', 'limit=201', 'after=nothing', 'unknown=1'])('refuses ?%s', async (query) => {
    const { client } = await newUser();
    for (const list of ['credentials', 'activity']) {
      expect((await call(client, 'GET', `account/${list}?${query}`)).status).toBe(400);
    }
  });

  /** Inserts the audit event with which the token endpoint records a token of an application. */
  const issuedToken = (user: UserRow, sessionId: string) =>
    rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, actor_id, subject_id, details)
       VALUES ($1, 'oauth_token_issued', 'oauth', $2, $2, $3)`,
      [
        randomUUID(),
        user.id,
        JSON.stringify({
          client_id: 'c',
          grant_type: 'authorization_code',
          scope: 'openid',
          sessionId,
        }),
      ],
    );
});

describe('POST /v1/account/certificates/{serial}/revoke', () => {
  const revoke = (browser: Client, serial: string) =>
    call(browser, 'POST', `account/certificates/${serial}/revoke`);

  it('puts the certificate on the revocation list, audits it, and leaves the others', async () => {
    const { id, client } = await newUser();
    const [kept, serial] = [await certificate(client), await certificate(client)];
    const answer = await revoke(client, serial);
    expect([answer.status, answer.json]).toEqual([
      200,
      { serial, revoked_at: expect.stringMatching(/Z$/), ended: { certificates: 1 } },
    ]);
    const list = await app
      .client()
      .get('/v1/credentials/ssh/krl', { headers: { accept: 'application/json' } });
    expect(list.json.revoked_serials.map(String)).toContain(serial);
    expect(list.json.revoked_serials.map(String)).not.toContain(kept);
    expect(await events('ssh_certificate_revoked', id)).toMatchObject([{ details: { serial } }]);
    const { credentials } = await read(client, 'account/credentials');
    expect(credentials.map((each: { revoked_at: unknown }) => each.revoked_at !== null)).toEqual([
      true,
      false,
    ]);
  });

  it('does not find a certificate of another user, an expired one, or a text that is no serial', async () => {
    const { client } = await newUser();
    const { client: other } = await newUser();
    const [foreign, expired] = [await certificate(other), await certificate(client)];
    await rows(
      app.dataSource,
      `UPDATE ssh_certificates SET valid_before = now() - interval '1 second' WHERE serial = $1`,
      [expired],
    );
    for (const serial of [foreign, expired, '1', '99999999999999999999', '-1', '1e3', 'x', '%00']) {
      expect([serial, (await revoke(client, serial)).status]).toEqual([serial, 404]);
    }
    expect(
      await count(
        app.dataSource,
        'ssh_certificates WHERE serial = ANY ($1) AND revoked_at IS NOT NULL',
        [[foreign, expired]],
      ),
    ).toBe(0);
  });

  it('revokes once for 20 requests at once', async () => {
    const { id, client } = await newUser();
    const serial = await certificate(client);
    const answers = await times20(() => revoke(client, serial));
    expect(answers.map(({ status }) => status).toSorted()).toEqual(oneOf20(200, 404));
    expect(await events('ssh_certificate_revoked', id)).toHaveLength(1);
  });
});

describe('/v1/account/applications', () => {
  const METADATA = {
    client_name: 'Grafana',
    redirect_uris: [
      'https://grafana.example/cb',
      'https://grafana.example/other',
      'com.example:/x',
    ],
  };
  const end = (browser: Client, id: string) =>
    call(browser, 'DELETE', `account/applications/${encodeURIComponent(id)}`);
  const userinfo = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await app.client().get('/oauth/userinfo', { headers })).status;
  };

  async function signedIn() {
    const user = await newUser();
    const clientId = await oauth.client();
    await rows(app.dataSource, 'UPDATE oauth_clients SET metadata = $2 WHERE id = $1', [
      clientId,
      JSON.stringify(METADATA),
    ]);
    const payload = { scope: 'openid', grantId: 'x' };
    const token = await oauth.token(user.row, { clientId, session: user.session, payload });
    await rows(app.dataSource, 'UPDATE oauth_grants SET payload = $2 WHERE client_id = $1', [
      clientId,
      JSON.stringify({
        openid: { scope: 'openid email' },
        resources: { 'https://api.example': 'orders:read' },
      }),
    ]);
    await rows(app.dataSource, 'INSERT INTO oauth_consents (user_id, client_id) VALUES ($1, $2)', [
      user.id,
      clientId,
    ]);
    return { ...user, clientId, token };
  }

  it('lists the applications that the user signed in to: name, hosts, scopes, first and last use', async () => {
    const { client, clientId } = await signedIn();
    const { client: other } = await newUser();
    expect(await read(client, 'account/applications')).toEqual({
      applications: [
        {
          client_id: clientId,
          name: 'Grafana',
          kind: 'dynamic',
          redirect_hosts: ['com.example:', 'grafana.example'],
          scopes: ['email', 'openid', 'orders:read'],
          since: expect.stringMatching(/Z$/),
          last_used_at: expect.stringMatching(/Z$/),
          has_access: true,
        },
      ],
    });
    expect(await read(other, 'account/applications')).toEqual({ applications: [] });
  });

  it('reads the scopes of at most 100 grants of an application, and no names of resources', async () => {
    const { id, client, clientId } = await signedIn();
    await rows(
      app.dataSource,
      `INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, expires_at)
       SELECT decode(md5($1 || n), 'hex'), client_id, user_id, session_id,
              payload || jsonb_build_object('resources', jsonb_build_object(repeat('x', 1000), 'orders:read')), expires_at
       FROM oauth_grants, generate_series(1, 150) n WHERE client_id = $1`,
      [clientId],
    );
    const [row] = await listOwnApplications(app.dataSource.manager, id);
    expect(row?.grants).toHaveLength(100);
    expect(JSON.stringify(row?.grants)).not.toContain('xx');
    const { applications } = (await read(client, 'account/applications')) as {
      applications: readonly { scopes: string[] }[];
    };
    expect(applications[0]?.scopes).toEqual(['email', 'openid', 'orders:read']);
  });

  it('ends grants, codes, tokens and the consent of the application in one transaction, and audits it', async () => {
    const { id, client, clientId, row, session } = await signedIn();
    await oauth.token(row, { clientId, session, model: 'AuthorizationCode' });
    await oauth.artifact('DeviceCode', randomBytes(8).toString('hex'), { clientId, userId: id });
    const kept = await oauth.token(row, { session });
    const answer = await end(client, clientId);
    expect([answer.status, answer.json]).toEqual([
      200,
      { ended: { sessions: 0, grants: 2, tokens: 1 } },
    ]);
    for (const table of ['oauth_grants', 'oauth_artifacts', 'oauth_consents']) {
      const left = await count(app.dataSource, `${table} WHERE client_id = $1`, [clientId]);
      expect([table, left]).toEqual([table, 0]);
    }
    expect(await events('oauth_access_ended', id)).toMatchObject([
      { details: { client_id: clientId, grants: 2, tokens: 1 } },
    ]);
    const headers = { authorization: `Bearer ${kept}` };
    expect((await app.client().get('/v1/keys', { headers })).status).toBe(200);
    expect((await call(client, 'GET', 'keys')).status).toBe(200);
  });

  it('makes a live token useless at once, at the introspection too', async () => {
    const { client, clientId, token } = await signedIn();
    expect(await userinfo(token)).not.toBe(401);
    expect((await end(client, clientId)).status).toBe(200);
    expect(await userinfo(token)).toBe(401);
  });

  it('ends the sessions that svc-cli has for itself, with their tokens', async () => {
    const { client, row } = await newUser();
    const token = await oauth.token(row);
    const headers = { authorization: `Bearer ${token}` };
    expect((await app.client().get('/v1/keys', { headers })).status).toBe(200);
    const answer = await end(client, 'svc-cli');
    expect(answer.json).toEqual({ ended: { sessions: 1, grants: 1, tokens: 1 } });
    expect((await app.client().get('/v1/keys', { headers })).status).toBe(401);
    expect((await call(client, 'GET', 'keys')).status).toBe(200);
  });

  it('does not find an application of another user, whose access stays', async () => {
    const { clientId, token } = await signedIn();
    const { client: eve } = await newUser();
    for (const id of [clientId, 'nothing', '%00', '../../keys']) {
      expect([id, (await end(eve, id)).status]).toEqual([id, 404]);
    }
    expect(await userinfo(token)).not.toBe(401);
  });

  it('ends an access once for 20 requests at once', async () => {
    const { id, client, clientId } = await signedIn();
    const answers = await times20(() => end(client, clientId));
    expect(answers.map(({ status }) => status).toSorted()).toEqual(oneOf20(200, 404));
    expect(await events('oauth_access_ended', id)).toHaveLength(1);
  });
});

describe('POST /v1/sessions/end-others', () => {
  const endOthers = (browser: Client) => call(browser, 'POST', 'sessions/end-others');

  it('ends every session but that of the request, with its tokens, and audits each', async () => {
    const { id, client, key, row } = await newUser();
    const phone = app.client();
    await phone.logIn(key);
    const token = await oauth.token(row);
    const { client: other } = await newUser();
    const answer = await endOthers(client);
    expect([answer.status, answer.json]).toEqual([
      200,
      { ended: { sessions: 2, grants: 1, tokens: 1 } },
    ]);
    expect((await call(phone, 'GET', 'keys')).status).toBe(401);
    const headers = { authorization: `Bearer ${token}` };
    expect((await app.client().get('/v1/keys', { headers })).status).toBe(401);
    expect((await call(client, 'GET', 'keys')).status).toBe(200);
    expect((await call(other, 'GET', 'keys')).status).toBe(200);
    expect(await events('session_ended', id)).toHaveLength(2);
  });

  it('ends each session once for 20 requests at once', async () => {
    const { id, client, key } = await newUser();
    for (let n = 0; n < 3; n += 1) await app.client().logIn(key);
    const answers = await times20(() => endOthers(client));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    const ended = answers.map(({ json }) => json.ended.sessions as number);
    expect(ended.toSorted((a, b) => b - a)).toEqual(oneOf20(3, 0));
    expect(await events('session_ended', id)).toHaveLength(3);
  });

  it('leaves one session when two end each other at once', async () => {
    const { id, client, key } = await newUser();
    const phone = app.client();
    await phone.logIn(key);
    const statuses = (await Promise.all([endOthers(client), endOthers(phone)])).map(
      ({ status }) => status,
    );
    expect(statuses.toSorted()).toEqual([200, 401]);
    expect(await count(app.dataSource, 'sessions WHERE user_id = $1', [id])).toBe(1);
  });
});

describe('GET /v1/account/activity', () => {
  it('says in words what the user did, with address, device, time and reference', async () => {
    const { client } = await newUser();
    const serial = await certificate(client);
    const { events: listed } = await read(client, 'account/activity');
    expect(listed[0]).toMatchObject({
      type: 'ssh_credential',
      text: `An SSH certificate was issued, serial ${serial}`,
      address: expect.any(String),
      request_id: expect.any(String),
    });
    const texts = listed.map((event: { text: string }) => event.text);
    expect(texts).toContain('You enrolled your first security key');
  });

  it('shows an act of an admin to the member without the admin’s address, and to the admin with it', async () => {
    const { client: admin, email } = await newUser();
    const domain = email.split('@')[1];
    const grace = `grace@${domain}`;
    const memberId = await addMember(app, email, grace, { scimManaged: false });
    const { client: member } = await app.enrolled(grace);
    await orgApi(admin, 'POST', `/members/${memberId}/promote`);
    const seen = async (by: Client) => (await read(by, 'account/activity')).events[0];
    expect(await seen(member)).toMatchObject({
      type: 'admin_promote',
      text: `${email} made you an admin`,
      address: null,
      device: null,
    });
    expect(await seen(admin)).toMatchObject({
      text: `You made ${grace} an admin`,
      address: expect.any(String),
    });
  });

  it('shows no event of another user, and pages without gaps', async () => {
    const { id, client } = await newUser();
    await newUser();
    for (let n = 0; n < 3; n += 1) await certificate(client);
    const seen: string[] = [];
    let path = 'account/activity?limit=2';
    for (;;) {
      const { events: page, next } = await read(client, path);
      seen.push(...page.map((event: { id: string }) => event.id));
      if (next === null) break;
      path = `account/activity?limit=2&after=${next}`;
    }
    const own = await rows<{ id: string }>(
      app.dataSource,
      'SELECT id FROM audit_events WHERE $1 IN (actor_id, subject_id) ORDER BY created_at DESC, id DESC',
      [id],
    );
    expect(seen).toEqual(own.map((event) => event.id));
  });
});

describe('GET /v1/account/export', () => {
  it('is one JSON file with everything about the user, and without a secret', async () => {
    const { id, email, client, row, session } = await newUser();
    const serial = await certificate(client);
    const clientId = await oauth.client();
    const token = await oauth.token(row, { clientId, session });
    const answer = await call(client, 'GET', 'account/export');
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="account.json"');
    expect(answer.headers.get('cache-control')).toContain('no-store');
    const exported = JSON.parse(answer.text);
    expect(exported).toMatchObject({
      exported_at: expect.stringMatching(/Z$/),
      profile: { id, email, is_org_admin: true, identities: [expect.anything()] },
      keys: [{ name: 'Security key' }],
      sessions: [{ level: 'verified' }],
      applications: [{ id: clientId }],
      ssh_certificates: [{ serial }],
    });
    expect(exported.activity.map((event: { type: string }) => event.type)).toContain('enrollment');
    const cookie = client.cookie('svc_session') ?? '';
    for (const secret of [cookie, token, 'token_hash', 'sealed', 'public_key_pem']) {
      expect(answer.text).not.toContain(secret);
    }
  });

  it('has every event of a user with more events than a batch, each once', async () => {
    const { id, client } = await newUser();
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, actor_id, subject_id, created_at)
       SELECT gen_random_uuid(), 'login_success', 'auth', $1, $1, now() - make_interval(secs => n / 7)
       FROM generate_series(1, 1203) n`,
      [id],
    );
    const all = await count(app.dataSource, 'audit_events WHERE $1 IN (actor_id, subject_id)', [
      id,
    ]);
    const exported = JSON.parse((await call(client, 'GET', 'account/export')).text);
    const ids = new Set(exported.activity.map((event: { id: string }) => event.id));
    expect([exported.activity.length, ids.size]).toEqual([all, all]);
  });

  it('does not say who the operator of the service is, nor the machine', async () => {
    const { id, client } = await newUser();
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, subject_id, details)
       VALUES (gen_random_uuid(), 'admin_promote', 'admin', $1, $2)`,
      [
        id,
        JSON.stringify({
          ...operatorDetails({
            name: 'os-olga',
            uid: 4_711_815_162_342,
            loginUid: 4_711_815_162_343,
            claimedUser: 'claimed-olga',
            host: 'machine-seven.internal',
          }),
          sudo_user: 'sudo-olga', // a field that earlier versions recorded
        }),
      ],
    );
    const { text } = await call(client, 'GET', 'account/export');
    expect(text).toContain('The operator of the service made you an admin');
    expect(text).not.toMatch(/olga|471181516234|machine-seven/);
  });

  it('has the newest attested SSH keys first, because a longer list is cut', async () => {
    const { id, client } = await newUser();
    await rows(
      app.dataSource,
      `INSERT INTO ssh_attested_keys (user_id, public_key, verify_required, attested_at)
       SELECT $1, 'SHA256:' || n, true, now() - make_interval(days => n) FROM generate_series(0, 1000) AS n`,
      [id],
    );
    const { attested_ssh_keys: keys } = JSON.parse(
      (await call(client, 'GET', 'account/export')).text,
    );
    expect([keys.length, keys[0].fingerprint, keys[999].fingerprint]).toEqual([
      1000,
      'SHA256:0',
      'SHA256:999',
    ]);
  });

  it('has nothing of a colleague', async () => {
    const { client, email } = await newUser();
    const grace = `grace@${email.split('@')[1]}`;
    await addMember(app, email, grace);
    const { client: colleague } = await app.enrolled(grace);
    await certificate(colleague);
    expect((await call(client, 'GET', 'account/export')).text).not.toContain(grace);
  });
});

it('gives a person without an organization the same lists', async () => {
  const { client, row } = await newUser(`ada-${randomUUID()}@gmail.com`);
  expect(row.orgId).toBeNull();
  await certificate(client);
  expect((await read(client, 'account/credentials')).credentials).toHaveLength(1);
  expect((await read(client, 'account/activity')).events.length).toBeGreaterThan(1);
  expect(JSON.parse((await call(client, 'GET', 'account/export')).text).profile.organization).toBe(
    null,
  );
});

it('gives nothing to a session that signed in upstream alone', async () => {
  const { email } = await newUser();
  const bootstrap = app.client();
  await bootstrap.signIn(email);
  for (const path of ['credentials', 'applications', 'activity', 'export']) {
    const answer = await call(bootstrap, 'GET', `account/${path}`);
    expect([path, answer.status, answer.json.code]).toEqual([path, 403, 'hardware_required']);
  }
  const unknown = await postForm(app, '/v1/account/credentials', {});
  expect(unknown.status).toBe(405);
});
