import {
  cpSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, suite } from 'vitest';
import { ageTouches, assign, setRule } from '../support/access-targets.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { claimsOf } from '../support/applications.js';
import { newAddress } from '../support/client.js';
import '../support/full-scale-only.js';
import { sendSecurely } from '../support/https-client.js';
import { startKubernetesApi, type KubernetesApi } from '../support/kubernetes-api.js';
import { newKubectl, oldKubectl, type Kubectl } from '../support/kubectl.js';
import { auditOf } from '../support/rows.js';
import { SCALE } from '../support/scale.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { assigned } from '../support/domains.js';
import { SvcHome, runProgram, type CommandEnd } from '../support/svc-command.js';

const DOMAIN = 'kubectl.example';
const CLUSTER = 'https://prod.k8s.example';
const ELSE = 'https://else.k8s.example';
/** A resource with a comma. `kubectl config set-credentials` would split it into two arguments. */
const COMMA = `${CLUSTER}/,x`;
const V1 = 'client.authentication.k8s.io/v1';
const V1BETA1 = 'client.authentication.k8s.io/v1beta1';
const execInfo = (apiVersion: unknown) => ({
  KUBERNETES_EXEC_INFO: JSON.stringify({ apiVersion, kind: 'ExecCredential', spec: {} }),
});

let app: TestApp;
let organization: ScimOrganization;
/** The id of the organization of `DOMAIN`. */
let orgId: string;
let people = 0;
beforeAll(async () => {
  app = await startTestApp();
  organization = await foundOrganization(app, DOMAIN);
  for (const resource of [CLUSTER, ELSE, COMMA]) await register(resource);
  const { client } = organization.admin;
  const { json } = await client.get('/api/v1/applications', { address: newAddress() });
  orgId = json.applications[0].org_id as string;
});
afterAll(() => app.close());

/** Provisions a user by SCIM, and enrolls a key as that user. */
async function provisioned(): Promise<{ id: string; email: string; user: EnrolledUser }> {
  people += 1;
  const email = `user-${people}@${DOMAIN}`;
  const created = await organization.scim('POST', '/Users', {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
    userName: email,
  });
  expect(created.status).toBe(201);
  return { id: created.json.id as string, email, user: await app.enrolled(email) };
}

async function register(resource: string): Promise<string> {
  await assigned(app, `admin@${DOMAIN}`, 'k8s.example');
  const body = { name: 'Production', type: 'kubernetes', resource };
  const options = { address: newAddress() };
  const answer = await organization.admin.client.post('/api/v1/applications', body, options);
  expect(answer.status).toBe(201);
  return answer.json.client_id as string;
}

/** Returns a home folder in which the command is logged in as the user. */
async function loggedIn(user: EnrolledUser): Promise<SvcHome> {
  const home = await SvcHome.create();
  await home.logIn(app, user);
  return home;
}

const tokenOf = ({ stdout }: CommandEnd): string =>
  (JSON.parse(stdout) as { status: { token: string } }).status.token;

/** Returns the path of the only file in which the command stores a token for a cluster. */
function cacheOf(home: SvcHome): string {
  const [file = '', ...others] = readdirSync(home.state(app, 'kubectl'));
  expect(others).toEqual([]);
  return home.state(app, 'kubectl', file);
}

/** Makes a stored token expire in so many seconds. */
function setSecondsLeft(home: SvcHome, seconds: number): void {
  const path = cacheOf(home);
  const expires = new Date(Date.now() + seconds * 1000).toISOString();
  const stored = JSON.parse(readFileSync(path, 'utf8')) as object;
  writeFileSync(path, JSON.stringify({ ...stored, expires_at: expires }));
}

describe('svc kubectl token', () => {
  let home: SvcHome;
  let email: string;
  beforeEach(async () => {
    const made = await provisioned();
    ({ email } = made);
    home = await loggedIn(made.user);
  });
  afterEach(() => home.remove());

  const token = (env: Record<string, string> = {}, resource = CLUSTER) =>
    home.run(['kubectl', 'token', '--resource', resource], { env });

  it.each([
    ['v1', execInfo(V1), V1],
    ['v1beta1', execInfo(V1BETA1), V1BETA1],
    ['v1, run by hand', {}, V1],
  ])('answers in the version that kubectl names: %s', async (_, env, apiVersion) => {
    const end = await token(env);
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(JSON.parse(end.stdout)).toEqual({
      apiVersion,
      kind: 'ExecCredential',
      status: {
        token: expect.any(String) as string,
        expirationTimestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as string,
      },
    });
    const claims = claimsOf(tokenOf(end));
    expect(claims).toMatchObject({
      aud: CLUSTER,
      email,
      client_id: 'svc-cli',
      org_id: orgId,
    });
    expect(claims).not.toHaveProperty('cnf');
    const { status } = JSON.parse(end.stdout) as { status: { expirationTimestamp: string } };
    const ends = Date.parse(status.expirationTimestamp) / 1000;
    expect(ends).toBeLessThanOrEqual(Number(claims['exp']));
    expect(ends).toBeGreaterThan(Number(claims['exp']) - 10);
  });

  it.each([
    ['another version', execInfo('client.authentication.k8s.io/v1alpha1')],
    ['no version', execInfo(undefined)],
    ['another interface', execInfo('example.com/v1')],
    ['no JSON', { KUBERNETES_EXEC_INFO: '{' }],
    ['JSON null', { KUBERNETES_EXEC_INFO: 'null' }],
  ])('refuses %s in one line, and prints no token', async (_, env) => {
    const end = await token(env);
    expect([end.status, end.stdout]).toEqual([1, '']);
    expect(end.stderr).toMatch(/^svc: [^\n]+; [^\n]+\n$/);
  });

  it('keeps the token in a file of mode 0600 until a minute before its end', async () => {
    const first = tokenOf(await token());
    expect((statSync(cacheOf(home)).mode & 0o777).toString(8)).toBe('600');
    expect((statSync(home.state(app, 'kubectl')).mode & 0o777).toString(8)).toBe('700');
    setSecondsLeft(home, 75);
    expect(tokenOf(await token(execInfo(V1BETA1)))).toBe(first);
    setSecondsLeft(home, 59);
    expect(tokenOf(await token())).not.toBe(first);
  });

  it('replaces a stored token that is damaged, and one of an earlier login', async () => {
    const first = tokenOf(await token());
    writeFileSync(cacheOf(home), '{');
    const second = tokenOf(await token());
    expect(second).not.toBe(first);
    const { user } = await provisioned();
    await home.logIn(app, user);
    expect(claimsOf(tokenOf(await token()))['email']).not.toBe(email);
  });

  it('asks the server once when 5 processes start at the same time', async () => {
    const ends = await Promise.all(Array.from({ length: 5 }, () => token()));
    expect(new Set(ends.map(tokenOf)).size).toBe(1);
    const audit = await auditOf(app.dataSource, email);
    expect(audit.filter(({ type }) => type === 'token_exchange')).toHaveLength(1);
  });

  it('works without a network while the stored token is valid, and says so after that', async () => {
    const away = { baseUrl: 'https://login.invalid' };
    const first = tokenOf(await token());
    cpSync(home.state(app), home.state(away), { recursive: true });
    const offline = () =>
      home.run(['--server', away.baseUrl, 'kubectl', 'token', '--resource', CLUSTER]);
    expect(tokenOf(await offline())).toBe(first);
    rmSync(home.state(away, 'kubectl'), { recursive: true });
    const end = await offline();
    expect([end.status, end.stdout]).toEqual([1, '']);
    expect(end.stderr).toMatch(/^svc: login\.invalid cannot be reached[^\n]+\n$/);
  });

  it('never waits for input', async () => {
    const end = await home.run(['kubectl', 'token', '--resource', CLUSTER], { started: () => {} });
    expect(end.status).toBe(0);
  });

  it('says in one line what to do: without a login, for an unknown cluster, with wrong arguments', async () => {
    const unknown = await token({}, 'https://unknown.k8s.example');
    expect([unknown.status, unknown.stdout]).toEqual([4, '']);
    expect(unknown.stderr).toMatch(/^svc: [^\n]+ https:\/\/unknown\.k8s\.example [^\n]+\n$/);
    for (const args of [
      ['kubectl'],
      ['kubectl', 'token'],
      ['kubectl', 'other', '--resource', 'x'],
    ]) {
      const wrong = await home.run(args);
      expect([wrong.status, wrong.stdout]).toEqual([2, '']);
    }
    home.writeState(app, 'token.json', {
      access_token: 'x',
      scope: '',
      expires_at: new Date(Date.now() - 1000).toISOString(),
      user: { id: 'x' },
    });
    expect(await token()).toEqual({
      status: 3,
      stdout: '',
      stderr: 'svc: your login has ended; run: svc login\n',
    });
  });

  it('says in one line that the person is not assigned, as for a cluster that does not exist', async () => {
    const resource = 'https://closed.k8s.example';
    const id = await register(resource);
    await setRule(app, id, { access: 'assigned' });
    const refused = await token({}, resource);
    expect(refused).toEqual({
      status: 4,
      stdout: '',
      stderr: expect.stringMatching(
        /^svc: you are not assigned to a cluster [^\n]+; ask an admin [^\n]+\/account\/reach [^\n]+\n$/,
      ) as string,
    });
    const unknown = await token({}, 'https://unknown.k8s.example');
    expect(unknown.stderr.replace('unknown', 'closed')).toBe(refused.stderr);
    await assign(app, id, { email });
    expect((await token({}, resource)).status).toBe(0);
  });

  it('says in one line which touch a cluster needs, and that a device cannot give it', async () => {
    const resource = 'https://touched.k8s.example';
    await setRule(app, await register(resource), { touchWithinSeconds: 120 });
    await ageTouches(app, email, 200);
    expect(await token({}, resource)).toEqual({
      status: 3,
      stdout: '',
      stderr:
        'svc: This needs a touch of your security key in the last 2 minutes; Run: svc login\n',
    });
    await app.dataSource.query(
      "UPDATE sessions SET of_device = true, touches = '{}' WHERE user_id = (SELECT id FROM users WHERE email = $1)",
      [email],
    );
    const device = await token({}, resource);
    expect([device.status, device.stdout]).toEqual([4, '']);
    expect(device.stderr).toMatch(/^svc: [^\n]*Log in in a browser[^\n]*; run: svc login\n$/);
  });

  it('an application that is deleted gives no token any more', async () => {
    const resource = 'https://deleted.k8s.example';
    const id = await register(resource);
    expect((await token({}, resource)).status).toBe(0);
    const path = `/api/v1/applications/${id}`;
    await organization.admin.client.send('DELETE', path, { address: newAddress() });
    setSecondsLeft(home, 0);
    expect((await token({}, resource)).status).toBe(4);
  });
});

describe('the stand-in of an API server', () => {
  it('refuses what kube-apiserver refuses: a forged, foreign or misdirected token, and none', async () => {
    const { user } = await provisioned();
    const home = await loggedIn(user);
    const api = await startKubernetesApi({
      issuer: app.baseUrl,
      audience: CLUSTER,
      organization: orgId,
    });
    const other = 'https://other.k8s.example';
    await register(other);
    const get = async (token: string) =>
      (
        await sendSecurely(`${api.url}/version`, {
          ca: api.ca,
          headers: token === '' ? {} : { authorization: `Bearer ${token}` },
        })
      ).status;
    const plugin = (resource: string) => home.run(['kubectl', 'token', '--resource', resource]);
    const good = tokenOf(await plugin(CLUSTER));
    expect(await get(good)).toBe(200);
    const [head = '', claims = '', signature = ''] = good.split('.');
    const root = Buffer.from(
      JSON.stringify({ ...claimsOf(good), email: 'root@k8s.example' }),
    ).toString('base64url');
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    for (const bad of [
      '',
      `${head}.${root}.${signature}`,
      `${none}.${claims}.`,
      tokenOf(await plugin(other)),
      readFileSync(home.state(app, 'token.json'), 'utf8').match(/"access_token": "([^"]+)/)?.[1] ??
        '',
    ]) {
      expect(await get(bad)).toBe(401);
    }
    await api.close();
    await home.remove();
  });
});

const old = oldKubectl();
const recent = newKubectl();
withKubectl('kubectl 1.20, which speaks v1beta1', old, V1BETA1);
// A newer kubectl runs only at full scale, because the tests above run the plugin with v1
// themselves.
if (recent && SCALE === 'full') withKubectl('a kubectl that speaks v1', recent, V1);

function withKubectl(title: string, kubectl: Kubectl | undefined, apiVersion: string): void {
  const why = kubectl ? '' : ' (skipped: this needs kubernetes-client)';
  suite.skipIf(kubectl === undefined)(`${title}${why}`, () => {
    let home: SvcHome;
    let api: KubernetesApi;
    let id: string;
    let email: string;
    /** The kubeconfig as this kubectl writes it, before svc adds the plugin. */
    let written: string;
    beforeAll(async () => {
      api = await startKubernetesApi({
        issuer: app.baseUrl,
        audience: CLUSTER,
        organization: orgId,
      });
      home = await SvcHome.create();
      link();
      writeFileSync(join(home.path, 'ca.crt'), api.ca);
      const ca = [`--certificate-authority=${join(home.path, 'ca.crt')}`, '--embed-certs'];
      const created = await run('config', 'set-cluster', 'prod', `--server=${api.url}`, ...ca);
      expect(created.status).toBe(0);
      await run('config', 'set', 'users.before.token', 'secret-of-another-user');
      written = (await run('config', 'view', '--raw')).stdout;
      await home.remove();
    });
    afterAll(() => api.close());
    beforeEach(async () => {
      const made = await provisioned();
      ({ id, email } = made);
      home = await loggedIn(made.user);
      link();
      mkdirSync(join(home.path, '.kube'));
      writeFileSync(join(home.path, '.kube/config'), written, { mode: 0o600 });
    });
    afterEach(() => home.remove());

    const link = () => symlinkSync(kubectl?.path ?? '', join(home.path, '.local/bin/kubectl'));

    const run = (...args: string[]) => runProgram('kubectl', args, { env: home.env });
    const version = () => run('--context', 'svc-prod', 'get', '--raw', '/version');
    const setup = (...args: string[]) => home.run(['setup', 'kubectl', ...args, '--yes']);
    const install = () => setup('--cluster', 'prod', '--resource', CLUSTER);
    const kubeconfig = () => readFileSync(join(home.path, '.kube/config'), 'utf8');

    it('gets /version with the token of the plugin that svc setup configured', async () => {
      expect(await install()).toMatchObject({ status: 0, stderr: '' });
      expect(kubeconfig()).toContain(`apiVersion: ${apiVersion}\n`);
      const end = await version();
      expect(end).toMatchObject({ status: 0, stderr: '' });
      expect(JSON.parse(end.stdout)).toMatchObject({ gitVersion: 'v1.34.0' });
      expect(api.seen.at(-1)).toMatchObject({ email, aud: CLUSTER, hardware_verified: true });
    });

    it('svc setup changes nothing the second time, and --remove restores the file byte for byte', async () => {
      const before = kubeconfig();
      expect((await install()).stdout).not.toContain('secret-of-another-user');
      await version();
      const after = kubeconfig();
      for (const args of [['--cluster', 'prod', '--resource', CLUSTER], []]) {
        expect((await setup(...args)).stdout).toMatch(/^Nothing to change\.$/m);
      }
      expect(kubeconfig()).toBe(after);
      expect(await setup('--remove')).toMatchObject({ status: 0, stderr: '' });
      expect(kubeconfig()).toBe(before);
      expect(readdirSync(home.state(app))).not.toContain('kubectl');
      expect((await version()).status).not.toBe(0);
      expect((await setup('--remove')).stdout).toMatch(/^Nothing to change\.$/m);
    });

    it('svc setup says that kubectl drops the comments of the file, where it has any', async () => {
      const dryRun = async () =>
        (
          await home.run([
            'setup',
            'kubectl',
            '--cluster',
            'prod',
            '--resource',
            CLUSTER,
            '--dry-run',
          ])
        ).stdout;
      expect(await dryRun()).not.toContain('comments');
      writeFileSync(join(home.path, '.kube/config'), `# ours\n${kubeconfig()}`);
      expect(await dryRun()).toContain('its comments are lost');
    });

    it('refuses a token for another cluster, and kubectl says so', async () => {
      expect((await setup('--cluster', 'prod', '--resource', ELSE)).status).toBe(0);
      const end = await version();
      expect([end.status, end.stdout]).toEqual([1, '']);
      expect(end.stderr).toContain('Unauthorized');
    });

    it('after SCIM DELETE it is refused once its token has ended, and one line says why', async () => {
      await install();
      expect((await version()).status).toBe(0);
      expect((await organization.scim('DELETE', `/Users/${id}`)).status).toBe(204);
      setSecondsLeft(home, 0); // as after the five minutes of a token
      const requests = api.seen.length;
      const end = await version();
      expect([end.status, end.stdout]).toEqual([1, '']);
      const lines = end.stderr.split('\n').filter((line) => line.startsWith('svc: '));
      // A newer kubectl runs the plugin twice, so the line may come twice.
      expect([...new Set(lines)]).toEqual([
        `svc: ${new URL(app.baseUrl).host} has ended your login or removed your access; run: svc login`,
      ]);
      expect(api.seen).toHaveLength(requests);
    });

    it('svc setup names an unknown cluster, and leaves a user of another maker alone', async () => {
      const before = kubeconfig();
      const unknown = await setup('--cluster', 'stage', '--resource', CLUSTER);
      expect([unknown.status, unknown.stderr]).toEqual([1, expect.stringContaining('stage')]);
      const taken = await setup('--cluster', 'prod', '--user', 'before', '--resource', CLUSTER);
      expect([taken.status, taken.stderr]).toEqual([1, expect.stringContaining('--user')]);
      for (const args of [
        ['--cluster', 'prod'],
        ['--cluster', 'prod', '--resource', 'prod'],
      ]) {
        expect((await setup(...args)).status).toBe(2);
      }
      const notReached = 'https://nowhere.k8s.example';
      const refused = await setup('--cluster', 'prod', '--resource', notReached);
      expect([refused.status, refused.stderr]).toEqual([
        4,
        expect.stringContaining(`${app.baseUrl}/account`),
      ]);
      const listed = await setup();
      expect([listed.status, listed.stdout]).toEqual([0, expect.stringContaining(CLUSTER)]);
      expect(kubeconfig()).toBe(before);
    });

    it('svc setup asks the server again before it writes an entry that it wrote before', async () => {
      const resource = `https://asked-again.k8s.example/${apiVersion}`;
      const client = await register(resource);
      const again = () => setup('--cluster', 'prod', '--resource', resource);
      const before = kubeconfig();
      expect((await again()).status).toBe(0);
      expect(kubeconfig()).toContain(resource);
      await setRule(app, client, { access: 'assigned' });
      expect((await again()).stdout).toMatch(/^Nothing to change\.$/m);
      writeFileSync(join(home.path, '.kube/config'), before);
      expect(await again()).toMatchObject({
        status: 4,
        stderr: expect.stringContaining(resource) as string,
      });
      const all = await setup();
      expect([all.status, all.stdout]).toEqual([0, expect.stringContaining('svc-prod no more')]);
      expect(kubeconfig()).toBe(before);
    });

    it('svc setup writes to the file of KUBECONFIG, makes it, and --remove takes it away', async () => {
      const file = join(home.path, 'own/config');
      const env = { KUBECONFIG: file };
      const args = ['setup', 'kubectl', '--user', 'svc', '--resource', COMMA, '--yes'];
      expect(await home.run(args, { env })).toMatchObject({ status: 0, stderr: '' });
      expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
      expect(readFileSync(file, 'utf8')).toContain(`- ${COMMA}\n`);
      expect(kubeconfig()).not.toContain('exec');
      await setup('--remove'); // finds the file by the note that setup made
      expect(readdirSync(join(home.path, 'own'))).toEqual([]);
    });
  });
}
