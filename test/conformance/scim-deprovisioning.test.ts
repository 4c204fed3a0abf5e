import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { addApplication, type Application } from '../support/applications.js';
import { newAddress, type Answer } from '../support/client.js';
import { CALLBACK, newCodeFields, postForm } from '../support/oauth-flow.js';
import { requires } from '../support/programs.js';
import { count, rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { SSHD_PROGRAMS, startSshd, type Sshd } from '../support/sshd.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ADMIN = 'admin@loop.example';
const LEAVERS = { DELETE: 'grace@loop.example', 'active: "False"': 'alan@loop.example' } as const;
type Options = Parameters<SoftwareKey['get']>[0];

/**
 * Tests the whole chain from the identity provider to a real sshd: when the provider removes a
 * user, every kind of access ends.
 */
requires(...SSHD_PROGRAMS).describe('somebody who leaves, by SCIM', () => {
  let app: TestApp;
  let sshd: Sshd;
  let folder: string;
  let revoked: string;
  let scim: ScimOrganization['scim'];
  let application: Application;
  beforeAll(async () => {
    app = await startTestApp();
    folder = await makeTemporaryDirectory();
    revoked = join(folder, 'revoked.krl');
    ({ scim } = await foundOrganization(app, 'loop.example'));
    application = await addApplication(
      app,
      { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'client_secret_post' },
      { owner: ADMIN },
    );
    await refreshRevocations();
    sshd = await startSshd({
      authorities: [(await app.client().get('/v1/credentials/ssh/ca')).text.trim()],
      principals: Object.values(LEAVERS),
      config: [`RevokedKeys ${revoked}`],
    });
  });
  afterAll(async () => {
    await sshd.stop();
    await app.close();
    await removeDirectory(folder);
  });

  /**
   * Replaces the host's revocation list by the served one, as the timer of docs/operations/ssh.md
   * does. Returns the JSON form of the list.
   */
  async function refreshRevocations(): Promise<Answer> {
    const response = await fetch(`${app.baseUrl}/v1/credentials/ssh/krl`, {
      headers: { 'x-forwarded-for': newAddress() },
    });
    writeFileSync(revoked, Buffer.from(await response.arrayBuffer()));
    return app.client().get('/v1/credentials/ssh/krl', { headers: { accept: 'application/json' } });
  }

  const secret = () => ({
    client_id: application.clientId,
    client_secret: application.clientSecret,
  });
  const introspect = async (token: string) =>
    (await postForm(app, '/oauth/introspect', { token, ...secret() })).json.active as boolean;
  const bearer = (path: string, token: string) =>
    app.client().get(path, { headers: { authorization: `Bearer ${token}` } });

  async function code({ client }: EnrolledUser) {
    return { ...(await newCodeFields(client, application.clientId)), ...secret() };
  }
  async function touch({ key }: EnrolledUser): Promise<Answer> {
    const asked = await postForm(app, '/oauth/fido2/challenge', { client_id: 'svc-cli' });
    const { state, publicKey } = asked.json as { state: string; publicKey: Options };
    const credential = JSON.stringify(key.get(publicKey, 'svc-native:svc-cli'));
    return postForm(app, '/oauth/token', {
      grant_type: 'urn:svc:params:oauth:grant-type:fido2',
      client_id: 'svc-cli',
      scope: 'openid svc:credentials',
      state,
      assertion: Buffer.from(credential).toString('base64url'),
    });
  }
  async function certify({ client }: EnrolledUser, name: string) {
    const file = join(folder, name);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
    const public_key = readFileSync(`${file}.pub`, 'utf8').trim();
    const { json } = await client.post('/v1/credentials/ssh', { public_key });
    const certificate = `${file}-cert.pub`;
    writeFileSync(certificate, `${json.certificate}\n`);
    return { file, certificate, serial: String(json.serial) };
  }

  it.each(Object.entries(LEAVERS))(
    '%s of %s ends every kind of access at once',
    async (how, email) => {
      const made = await scim('POST', '/Users', { userName: email });
      expect(made.status).toBe(201);
      const id = made.json.id as string;
      const person = await app.enrolled(email);
      const ssh = await certify(person, how.slice(0, 6));
      const redeemed = await postForm(app, '/oauth/token', await code(person));
      const token = redeemed.json.access_token as string;
      const cli = (await touch(person)).json.access_token as string;
      const pending = await code(person);
      expect([
        (await person.client.get('/v1/keys')).status,
        (await bearer('/v1/keys', cli)).status,
        await introspect(token),
        (await bearer('/oauth/userinfo', token)).status,
        await sshd.login(ssh.file, ssh.certificate),
      ]).toMatchObject([200, 200, true, 200, { accepted: true }]);

      const began = performance.now();
      const seconds: Record<string, string> = {};
      const felt = (what: string) => {
        seconds[what] = ((performance.now() - began) / 1000).toFixed(3);
      };
      const left =
        how === 'DELETE'
          ? await scim('DELETE', `/Users/${id}`)
          : await scim('PATCH', `/Users/${id}`, {
              schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
              Operations: [{ op: 'Replace', path: 'active', value: 'False' }],
            });
      expect(left.status).toBe(how === 'DELETE' ? 204 : 200);
      felt('the answer to the identity provider');
      expect((await person.client.get('/v1/keys')).status).toBe(401);
      felt('the cookie is refused');
      expect((await bearer('/v1/keys', cli)).status).toBe(401);
      felt("svc-cli's token is refused");
      expect(await introspect(token)).toBe(false);
      felt("the application's token is inactive at introspection");
      expect((await bearer('/oauth/userinfo', token)).status).toBe(401);
      felt('userinfo is refused');
      expect((await postForm(app, '/oauth/token', pending)).json.error).toBe('invalid_grant');
      felt('the code is refused');
      expect((await touch(person)).json.error).toBe('invalid_grant');
      felt('the FIDO2 grant is refused');

      const list = await refreshRevocations();
      expect(list.json.revoked_serials.map(String)).toContain(ssh.serial);
      felt('the key revocation list has the serial');
      const query = spawnSync('ssh-keygen', ['-Q', '-f', revoked, ssh.certificate]);
      expect([query.status, query.stdout.toString()]).toEqual([
        1,
        expect.stringMatching(/REVOKED/),
      ]);
      expect(await sshd.login(ssh.file, ssh.certificate)).toMatchObject({ accepted: false });
      felt('sshd refuses, after its refresh');
      // oxlint-disable-next-line no-console -- this test prints the seconds
      console.log(`Seconds from ${how} until`, seconds);

      const [certificate] = await rows(
        app.dataSource,
        'SELECT revoke_reason, revoked_by FROM ssh_certificates WHERE serial = $1',
        [ssh.serial],
      );
      expect(certificate).toEqual({
        revoke_reason: expect.stringMatching(/^user (deleted|deactivated) by SCIM$/),
        revoked_by: 'scim',
      });
    },
  );

  it('a deleted user signs in upstream again and cannot enroll a key', async () => {
    const email = 'back@loop.example';
    const { json } = await scim('POST', '/Users', { userName: email });
    await app.enrolled(email);
    expect((await scim('DELETE', `/Users/${json.id}`)).status).toBe(204);
    const client = app.client();
    await client.signIn(email);
    const started = await client.post('/enroll/webauthn/start', {});
    expect(started.status).not.toBe(200);
    expect(await count(app.dataSource, 'users WHERE email = $1', [email])).toBe(0);
  });

  it('a re-enabled user logs in with the old key, and no earlier session or certificate works again', async () => {
    const email = 'again@loop.example';
    const { json } = await scim('POST', '/Users', { userName: email });
    const { client, key } = await app.enrolled(email);
    const cookie = client.cookie('svc_session') ?? '';
    const active = (value: unknown) =>
      scim('PUT', `/Users/${json.id}`, { userName: email, active: value });
    expect((await active(false)).json.active).toBe(false);
    expect((await client.logIn(key)).status).not.toBe(200);
    expect((await active(true)).json.active).toBe(true);
    const before = app.client();
    before.setCookie('svc_session', cookie);
    expect((await before.get('/v1/keys')).status).toBe(401);
    expect((await client.logIn(key)).status).toBe(200);
  });

  it('a user renamed to a foreign domain keeps the account, and gets no certificate for that name', async () => {
    const email = 'renamed@loop.example';
    const { json } = await scim('POST', '/Users', { userName: email });
    const { client, key } = await app.enrolled(email);
    const foreign = 'renamed@elsewhere.example';
    const renamed = await scim('PATCH', `/Users/${json.id}`, {
      Operations: [{ op: 'replace', value: { userName: foreign } }],
    });
    expect([renamed.status, renamed.json.userName]).toEqual([200, foreign]);
    expect((await client.get('/v1/keys')).status).toBe(401); // the rename ends the session
    await client.logIn(key);
    const file = join(folder, 'renamed');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
    const public_key = readFileSync(`${file}.pub`, 'utf8').trim();
    const asked = await client.post('/v1/credentials/ssh', { public_key });
    expect(asked.status).not.toBe(200);
    const issued = 'ssh_certificates WHERE user_id = $1 AND revoked_at IS NULL';
    expect(await count(app.dataSource, issued, [json.id])).toBe(0);
  });

  it('the last admin is deleted and the deletion is logged, and the next user does not become admin', async () => {
    const last = await foundOrganization(app, 'last.example');
    const filter = encodeURIComponent('userName eq "admin@last.example"');
    const found = await last.scim('GET', `/Users?filter=${filter}`);
    expect((await last.scim('DELETE', `/Users/${found.json.Resources[0].id}`)).status).toBe(204);
    expect(app.log.some((line) => line.includes('security') && line.includes('admin'))).toBe(true);
    await last.scim('POST', '/Users', { userName: 'next@last.example' });
    const next = await app.enrolled('next@last.example');
    expect((await next.client.get('/api/v1/org/scim-tokens')).status).toBe(403);
  });
});
