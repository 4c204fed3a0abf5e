import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { addKey, keysOf } from '../../support/keys.js';
import { OauthRows } from '../../support/oauth-rows.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

let app: TestApp;
let oauth: OauthRows;
beforeAll(async () => {
  app = await startTestApp();
  oauth = new OauthRows(app.dataSource);
});
afterAll(() => app.close());

let organizations = 0;

/** Creates an organization with ada as its admin and bob as a member. Each has a key. */
async function organization() {
  organizations += 1;
  const domain = `record-${organizations}.example`;
  const { client: ada } = await app.enrolled(`ada@${domain}`);
  const { client: bob, key } = await app.enrolled(`bob@${domain}`);
  return { domain, ada, bob, key, id: await idOf(app, `bob@${domain}`) };
}

/**
 * Gives bob one or more of each thing that an action can end: keys, certificates, tokens, sessions
 * and so on. Some of them have expired.
 */
async function holdEverything({ bob, id, domain }: Awaited<ReturnType<typeof organization>>) {
  await addKey(app, bob, app.newKey(), 'Spare');
  for (let n = 0; n < 3; n += 1) {
    const body = { public_key: newPublicKeyLine() };
    expect((await bob.post('/v1/credentials/ssh', body, { address: newAddress() })).status).toBe(
      200,
    );
  }
  await rows(
    app.dataSource,
    `UPDATE ssh_certificates SET valid_after = now() - interval '2 days', valid_before = now() - interval '1 day'
     WHERE serial = (SELECT min(serial) FROM ssh_certificates WHERE user_id = $1)`,
    [id],
  );
  const [row] = await rows<{ org_id: string; key_id: string }>(
    app.dataSource,
    'SELECT u.org_id, k.id AS key_id FROM users u JOIN authenticators k ON k.user_id = u.id WHERE u.id = $1 LIMIT 1',
    [id],
  );
  const user = { id, email: `bob@${domain}`, orgId: row?.org_id ?? null, keyId: row?.key_id ?? '' };
  await oauth.token(user);
  await oauth.token(user, { consumed: true });
  await oauth.token(user, { expiresIn: { token: -1, grant: -1, session: -1 } });
  const application = await oauth.application(user);
  await oauth.artifact('ClientCredentials', randomUUID(), { clientId: application });
  await oauth.artifact('ClientCredentials', randomUUID(), { clientId: application, expiresIn: -1 });
  const session = await oauth.session(user);
  for (const [sessionId, hours] of [
    [session.id, 1],
    [randomUUID(), 1],
    [session.id, -1],
  ] as const) {
    await rows(
      app.dataSource,
      `INSERT INTO github_tokens (id, installation_id, owner, user_id, org_id, session_id, sealed, permissions, expires_at)
       VALUES (gen_random_uuid(), 1, 'octo', $1, $2, $3, 'sealed', '{}', now() + make_interval(hours => $4))`,
      [id, user.orgId, sessionId, hours],
    );
  }
  await rows(
    app.dataSource,
    `INSERT INTO ssh_attested_keys (user_id, public_key, verify_required) VALUES ($1, 'SHA256:x', true)`,
    [id],
  );
  await rows(
    app.dataSource,
    `INSERT INTO enrollment_passes (user_id, hash, expires_at) VALUES ($1, sha256('pass'), now() + interval '1 hour')`,
    [id],
  );
  return { application, session: session.id };
}

const ended = (counts: Record<string, number>) =>
  Object.fromEntries(Object.entries(counts).filter(([, n]) => n > 0));

const withEverything = { sessions: 4, certificates: 2, grants: 2, tokens: 2, github_tokens: 2 };

describe('the acts of an admin', () => {
  it.each([
    ['deactivate', 'deactivate', { enrollment_passes: 1 }],
    ['revoke-credentials', 'revoke_credentials', { keys: 2, ssh_keys: 1, enrollment_passes: 1 }],
    ['remove', 'remove', { keys: 2, ssh_keys: 1, applications: 1, enrollment_passes: 1 }],
  ] as const)(
    '%s ends what the record of the member said it would, and the audit log says so',
    async (act, name, more) => {
      const the = await organization();
      await holdEverything(the);
      const record = await orgApi(the.ada, 'GET', `/members/${the.id}`);
      const will = ended(record.json.ending[name]);
      expect(will).toEqual({ ...withEverything, ...more });
      const prefer = { prefer: 'return=representation' };
      const answer = await orgApi(the.ada, 'POST', `/members/${the.id}/${act}`, undefined, prefer);
      expect([answer.status, ended(answer.json.ended)]).toEqual([200, will]);
      const [event] = await rows<{ details: Record<string, number> }>(
        app.dataSource,
        `SELECT details FROM audit_events WHERE subject_id = $1 AND class = 'admin' ORDER BY created_at DESC LIMIT 1`,
        [the.id],
      );
      expect(event?.details).toEqual({ email: `bob@${the.domain}`, ...answer.json.ended });
      if (act === 'remove') return;
      const after = await orgApi(the.ada, 'GET', `/members/${the.id}`);
      // GitHub tokens still count: they are queued until GitHub has revoked them
      const { github_tokens: _, ...left } = ended(after.json.ending[name]);
      expect(left).toEqual({});
    },
  );
});

describe('the record of a member', () => {
  it('shows keys, sessions, certificates, applications and GitHub tokens, and the last login', async () => {
    const the = await organization();
    const { application } = await holdEverything(the);
    const { json } = await orgApi(the.ada, 'GET', `/members/${the.id}`);
    expect(json).toMatchObject({
      id: the.id,
      keys: 2,
      scim_managed: false,
      security_keys: [{ name: 'Security key', fips: false, model: null }, { name: 'Spare' }],
      applications: [{ client_id: 'svc-cli', name: 'svc command line' }],
      owned_applications: [{ client_id: application }],
      last_login_at: expect.stringMatching(/Z$/),
    });
    expect(json.sessions).toHaveLength(4);
    expect(json.certificates.map(({ serial }: { serial: string }) => serial)).toHaveLength(3);
    expect(json.github_tokens).toHaveLength(2);
    expect(JSON.stringify(json)).not.toMatch(/sealed|public_key|credential_id|hash/);
  });

  it('is 404 for another organization, an unknown id and no id', async () => {
    const { id } = await organization();
    const { ada: eve } = await organization();
    for (const unknown of [id, randomUUID(), 'nobody']) {
      const answer = await orgApi(eve, 'GET', `/members/${unknown}`);
      expect([answer.status, answer.json.code]).toEqual([404, 'not_found']);
      expect((await eve.get(`/admin/members/${unknown}`)).status).toBe(404);
    }
  });
});

describe('If-Match', () => {
  const act = (admin: Client, id: string, name: string, tag: string) =>
    admin.post(`/api/v1/org/members/${id}/${name}`, undefined, {
      headers: { 'if-match': tag },
      address: newAddress(),
    });
  const tagOf = async (admin: Client, id: string) =>
    (await orgApi(admin, 'GET', `/members/${id}`)).headers.get('etag') ?? '';

  it('refuses an act on a member who has changed since, and changes nothing', async () => {
    const { ada, id, bob } = await organization();
    const first = await tagOf(ada, id);
    expect((await act(ada, id, 'promote', first)).status).toBe(200);
    const facts = () => rows(app.dataSource, 'SELECT * FROM users WHERE id = $1', [id]);
    const events = () =>
      rows(app.dataSource, 'SELECT id FROM audit_events WHERE subject_id = $1', [id]);
    const before = [await facts(), await events()];
    for (const name of [
      'demote',
      'deactivate',
      'revoke-credentials',
      'remove',
      'promote',
      'activate',
      'part',
      'give-address',
    ]) {
      const answer = await act(ada, id, name, first);
      expect([name, answer.status, answer.json.code]).toEqual([name, 412, 'precondition_failed']);
    }
    expect([await facts(), await events()]).toEqual(before);
    expect((await bob.get('/v1/keys')).status).toBe(200);
    expect((await act(ada, id, 'demote', '*')).status).toBe(200);
  });

  it('refuses the end of a session and of a key of a member who has changed since', async () => {
    const { ada, bob, id, domain } = await organization();
    const tag = await tagOf(ada, id);
    await addKey(app, bob, app.newKey(), 'Spare');
    const { security_keys, sessions } = (await orgApi(ada, 'GET', `/members/${id}`)).json;
    for (const part of [
      `keys/${security_keys[0].id as string}`,
      `sessions/${sessions[0].id as string}`,
    ]) {
      const answer = await ada.send('DELETE', `/api/v1/org/members/${id}/${part}`, {
        headers: { 'if-match': tag },
        address: newAddress(),
      });
      expect([part, answer.status, answer.json.code]).toEqual([part, 412, 'precondition_failed']);
    }
    expect(await keysOf(app, `bob@${domain}`)).toHaveLength(2);
    expect((await bob.get('/v1/keys')).status).toBe(200);
  });

  it('has a tag that a new key, a role and a state change, and a login does not', async () => {
    const { ada, bob, key, id, domain } = await organization();
    const tags = [await tagOf(ada, id)];
    await app.client().logIn(key);
    expect(await tagOf(ada, id)).toBe(tags[0]);
    await addKey(app, bob, app.newKey(), 'Spare');
    tags.push(await tagOf(ada, id));
    await orgApi(ada, 'POST', `/members/${id}/promote`);
    tags.push(await tagOf(ada, id));
    await orgApi(ada, 'POST', `/members/${id}/deactivate`);
    tags.push(await tagOf(ada, id));
    expect(new Set(tags).size).toBe(4);
    expect(await keysOf(app, `bob@${domain}`)).toHaveLength(2);
  });

  it('answers a read with If-None-Match in full: the tag says nothing about sessions', async () => {
    const { ada, id } = await organization();
    const headers = { 'if-none-match': await tagOf(ada, id) };
    const answer = await ada.get(`/api/v1/org/members/${id}`, { headers, address: newAddress() });
    expect([answer.status, answer.json.id]).toEqual([200, id]);
  });
});

describe('one session and one key of a member', () => {
  it('ends the session with its grants, tokens and GitHub tokens, and no other session', async () => {
    const the = await organization();
    const { session } = await holdEverything(the);
    const path = `/members/${the.id}/sessions/${session}`;
    const answer = await orgApi(the.ada, 'DELETE', path);
    expect([answer.status, answer.json]).toEqual([
      200,
      { ended: { sessions: 1, github_tokens: 1 } },
    ]);
    expect((await the.bob.get('/v1/keys')).status).toBe(200);
    expect((await orgApi(the.ada, 'DELETE', path)).status).toBe(404);
  });

  it('of 20 requests for one session, one ends it', async () => {
    const { ada, id } = await organization();
    const { sessions } = (await orgApi(ada, 'GET', `/members/${id}`)).json;
    const path = `/members/${id}/sessions/${sessions[0].id as string}`;
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => orgApi(ada, 'DELETE', path)),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(19).fill(404)]);
  });

  it('removes a key with what it opened, and never the only key', async () => {
    const { ada, bob, id, domain } = await organization();
    await bob.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    const [first] = await keysOf(app, `bob@${domain}`);
    const path = `/members/${id}/keys/${first?.id}`;
    const only = await orgApi(ada, 'DELETE', path);
    expect([only.status, only.json.code]).toEqual([409, 'last_key']);
    expect((await bob.get('/v1/keys')).status).toBe(200);
    await addKey(app, bob, app.newKey(), 'Spare');
    const removed = await orgApi(ada, 'DELETE', path);
    expect([removed.status, removed.json]).toEqual([
      200,
      { ended: { keys: 1, sessions: 1, certificates: 1 } },
    ]);
    expect((await bob.get('/v1/keys')).status).toBe(401);
    expect((await keysOf(app, `bob@${domain}`)).map(({ name }) => name)).toEqual(['Spare']);
  });

  it('are 404 for another organization and for another member, and refused on the own account', async () => {
    const { ada, id, domain } = await organization();
    const { ada: eve, id: evesBob } = await organization();
    const own = await idOf(app, `ada@${domain}`);
    const { sessions, security_keys: keys } = (await orgApi(ada, 'GET', `/members/${id}`)).json;
    const parts = [`sessions/${sessions[0].id as string}`, `keys/${keys[0].id as string}`];
    for (const part of parts) {
      expect((await orgApi(eve, 'DELETE', `/members/${id}/${part}`)).status).toBe(404);
      expect((await orgApi(eve, 'DELETE', `/members/${evesBob}/${part}`)).status).toBe(404);
      const self = await orgApi(ada, 'DELETE', `/members/${own}/${part}`);
      expect([self.status, self.json.code]).toEqual([409, 'own_account']);
    }
    expect((await orgApi(ada, 'DELETE', `/members/${id}/keys/none`)).status).toBe(404);
    expect((await orgApi(ada, 'DELETE', `/members/${id}/sessions/none`)).status).toBe(404);
    expect((await orgApi(ada, 'GET', `/members/${id}`)).json).toMatchObject({ keys: 1 });
  });
});
