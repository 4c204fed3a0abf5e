import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import { answerOf, keepOpened, openedAddress } from '../support/svc-login.js';
import { SvcHome, type CommandEnd } from '../support/svc-command.js';

let app: TestApp;
let ada: EnrolledUser;
let home: SvcHome;
beforeAll(async () => {
  app = await startTestApp();
  ada = await app.enrolled('ada@svc-login.example');
});
afterAll(() => app.close());
beforeEach(async () => {
  home = await SvcHome.create();
  keepOpened(home);
});
afterEach(() => home.remove());

const login = (...args: string[]) => {
  rmSync(join(home.path, 'opened'), { force: true });
  return home.run(['login', '--server', app.baseUrl, ...args]);
};

/** Logs in through the browser. `tamper` may change the browser's answer before it is sent. */
async function browserLogin(
  args: readonly string[] = [],
  user = ada,
): Promise<CommandEnd & { readonly page: string }> {
  const running = login(...args);
  const page = await fetch(await answerOf(app, user, await openedAddress(home)));
  return { ...(await running), page: await page.text() };
}

const svc = (...args: string[]) => home.run(args);
const tokenOf = (name: string) =>
  String(JSON.parse(readFileSync(home.state(app, name), 'utf8')).access_token);

describe('svc login', () => {
  it('opens the browser, takes its answer on a port of 127.0.0.1, and stores a bound token', async () => {
    const end = await browserLogin();
    expect(end).toMatchObject({
      status: 0,
      stderr: expect.stringContaining(`${app.baseUrl}/oauth/authorize?`),
    });
    expect(end.stdout).toMatch(
      /^Logged in as ada@svc-login\.example until \d{4}-\d\d-\d\d \d\d:\d\d\.\n$/,
    );
    expect(end.page).toContain('You can close this window.');
    expect(statSync(home.state(app)).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(home.state(app))) {
      expect([name, statSync(home.state(app, name)).mode & 0o777]).toEqual([name, 0o600]);
    }
    const status = await svc('status', '--json');
    expect(JSON.parse(status.stdout)).toMatchObject({
      server: app.baseUrl,
      user: { email: 'ada@svc-login.example' },
      scope: 'openid email svc:credentials',
      key: { aaguid: expect.stringMatching(/^[\da-f-]{36}$/) },
    });
    expect((await svc('keys')).stdout).toContain('this login');
  });

  it('asks for PKCE, state and the DPoP key, and keeps secrets out of the address', async () => {
    const running = login();
    const address = await openedAddress(home);
    const { searchParams } = address;
    expect(searchParams.get('code_challenge_method')).toBe('S256');
    expect(searchParams.get('dpop_jkt')).toMatch(/^[\w-]{43}$/);
    expect(searchParams.get('scope')).toBe('openid email svc:credentials');
    const answer = await answerOf(app, ada, address);
    await fetch(answer);
    await running;
    const { access_token: token } = JSON.parse(readFileSync(home.state(app, 'token.json'), 'utf8'));
    expect(address.href).not.toContain(token);
  });

  it('refuses another path, a wrong state, another issuer, another host name and a second answer', async () => {
    const running = login();
    const answer = await answerOf(app, ada, await openedAddress(home));
    const changed = (change: (url: URL) => void) => {
      const url = new URL(answer);
      change(url);
      return fetch(url).then(({ status }) => status);
    };
    expect(await changed((url) => (url.pathname = '/'))).toBe(404);
    expect(await changed((url) => url.searchParams.set('state', 'x'))).toBe(400);
    expect(await changed((url) => url.searchParams.delete('state'))).toBe(400);
    expect(await changed((url) => url.searchParams.set('iss', 'https://evil.example'))).toBe(400);
    expect(await changed((url) => url.searchParams.delete('iss'))).toBe(400);
    expect(await changed((url) => url.searchParams.delete('code'))).toBe(400);
    expect(await changed((url) => (url.hostname = 'localhost')).catch(() => 404)).toBe(404);
    expect((await fetch(answer, { method: 'POST' })).status).toBe(400);
    const [first, second] = await Promise.all([
      fetch(answer),
      fetch(answer).catch(() => ({ status: 400 })),
    ]);
    expect([first.status, second.status].toSorted()).toEqual([200, 400]);
    expect(await running).toMatchObject({ status: 0 });
  });

  it('ends with status 4 when the user refuses, and shows the reason without markup', async () => {
    const running = login();
    const { searchParams } = await openedAddress(home);
    const answer = new URL(searchParams.get('redirect_uri') ?? '');
    answer.search = new URLSearchParams({
      error: 'access_denied',
      error_description: '<img src=x>\u001b[31mred',
      state: searchParams.get('state') ?? '',
      iss: app.baseUrl,
    }).toString();
    const page = await (await fetch(answer)).text();
    expect(page).not.toContain('<img');
    const end = await running;
    expect(end).toMatchObject({ status: 4, stderr: expect.stringContaining('Not logged in') });
    expect(end.stderr).not.toContain('\u001b');
    expect(existsSync(home.state(app, 'token.json'))).toBe(false);
  });

  it('gives svc:admin by --admin alone, for 15 minutes, beside the token of every day', async () => {
    await browserLogin();
    const end = await browserLogin(['--admin', '--json']);
    const { expires_at: expires, scope } = JSON.parse(end.stdout);
    expect(scope.split(' ')).toContain('svc:admin');
    expect(Date.parse(expires) - Date.now()).toBeLessThanOrEqual(900_000);
    const { scope: daily } = JSON.parse(readFileSync(home.state(app, 'token.json'), 'utf8'));
    expect(daily).not.toContain('svc:admin');
  });

  it('tells a member who is no admin so, with status 4', async () => {
    const bob = await app.enrolled('bob@svc-login.example');
    const end = await browserLogin(['--admin'], bob);
    expect(end).toMatchObject({ status: 4, stderr: expect.stringContaining('not an admin') });
    expect(existsSync(home.state(app, 'admin-token.json'))).toBe(false);
  });

  it('as another user leaves nothing that came from the earlier one, and ends their tokens', async () => {
    await browserLogin();
    await browserLogin(['--admin']);
    const tokens = ['token.json', 'admin-token.json'].map((name) => tokenOf(name));
    const derived = ['ssh/id-cert.pub', 'git/acme/app.json', 'aws/role.json', 'kubectl/a.json'];
    for (const name of [...derived, 'ssh/id']) {
      mkdirSync(dirname(home.state(app, name)), { recursive: true, mode: 0o700 });
      writeFileSync(home.state(app, name), '{}', { mode: 0o600 });
    }
    await browserLogin(['--admin']);
    for (const name of derived) expect(existsSync(home.state(app, name)), name).toBe(true);
    const eve = await app.enrolled('eve@svc-login.example');
    const end = await browserLogin([], eve);
    expect(end).toMatchObject({ status: 0, stdout: expect.stringContaining('Logged in as eve@') });
    for (const name of [...derived, 'admin-token.json']) {
      expect(existsSync(home.state(app, name)), name).toBe(false);
    }
    expect(existsSync(home.state(app, 'ssh/id'))).toBe(true);
    expect(await svc('keys')).toMatchObject({ status: 0 });
    for (const token of tokens) {
      const [row] = await app.dataSource.query<{ n: string }[]>(
        "SELECT count(*) AS n FROM oauth_artifacts WHERE model = 'AccessToken' AND id = sha256($1)",
        [Buffer.from(token)],
      );
      expect(Number(row?.n)).toBe(0);
    }
  });

  it('drops the certificate and the GitHub tokens of an earlier login, which may be revoked', async () => {
    await browserLogin();
    for (const name of ['ssh/id-cert.pub', 'git/acme/app.json', 'ssh/id']) {
      mkdirSync(dirname(home.state(app, name)), { recursive: true, mode: 0o700 });
      writeFileSync(home.state(app, name), '{}', { mode: 0o600 });
    }
    home.writeState(app, 'admin-token.json', readFileSync(home.state(app, 'token.json'), 'utf8'));
    expect(await browserLogin()).toMatchObject({ status: 0 });
    expect(readdirSync(home.state(app)).toSorted()).toEqual([
      'admin-token.json',
      'dpop-key.json',
      'ssh',
      'token.json',
    ]);
    expect(readdirSync(home.state(app, 'ssh'))).toEqual(['id']);
  });

  it('replaces a token.json that names no user', async () => {
    home.writeState(app, 'token.json', { access_token: 'x', expires_at: '2020-01-01T00:00:00Z' });
    expect(await browserLogin()).toMatchObject({ status: 0 });
  });

  it('logs in by --device, with a warning about codes of other persons', async () => {
    const running = login('--device');
    await vi.waitFor(
      async () => {
        const [row] = await app.dataSource.query<{ n: string }[]>(
          "SELECT count(*) AS n FROM oauth_artifacts WHERE model = 'DeviceCode'",
        );
        expect(Number(row?.n)).toBeGreaterThan(0);
      },
      { timeout: 90_000, interval: 25 },
    );
    const [row] = await app.dataSource.query<{ user_code: string }[]>(
      "SELECT user_code FROM oauth_artifacts WHERE model = 'DeviceCode' ORDER BY created_at DESC LIMIT 1",
    );
    await ada.client.logIn(ada.key);
    const approved = await ada.client.post('/device/approve', { user_code: row?.user_code });
    expect(approved.status).toBeLessThan(300);
    const end = await running;
    expect(end).toMatchObject({ status: 0, stdout: expect.stringContaining('Logged in as ada@') });
    expect(end.stderr).toContain(`${app.baseUrl}/device`);
    expect(end.stderr).toContain('A code that another');
    const { scope, expires_at: expires } = JSON.parse(
      readFileSync(home.state(app, 'token.json'), 'utf8'),
    );
    expect(scope).toBe('openid svc:credentials');
    expect(Date.parse(expires) - Date.now()).toBeLessThanOrEqual(3_600_000);
    expect(await svc('login', '--device', '--admin')).toMatchObject({ status: 2 });
  });
});

describe('svc status', () => {
  it('says that the server accepts the login, and that it has ended it', async () => {
    await browserLogin();
    const before = await svc('status', '--json');
    expect([before.status, JSON.parse(before.stdout).server_says]).toEqual([0, 'accepted']);
    expect((await svc('status')).stdout).toMatch(/server says\s+logged in/);
    await app.dataSource.query("DELETE FROM sessions WHERE client_id = 'svc-cli'");
    const after = await svc('status');
    expect(after).toMatchObject({
      status: 3,
      stdout: '',
      stderr: expect.stringContaining('The server has ended your login'),
    });
    expect(after.stderr).toContain('svc login');
  });

  it('shows the stored login without a network, and says that the server did not answer', async () => {
    await home.logIn(app, ada);
    writeFileSync(home.config, JSON.stringify({ server: 'http://localhost:1' }));
    const away = { baseUrl: 'http://localhost:1' };
    home.writeState(away, 'token.json', readFileSync(home.state(app, 'token.json'), 'utf8'));
    const end = await svc('status');
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(end.stdout).toMatch(/server says\s+unknown: localhost:1 cannot be reached/);
    const { server_says: says } = JSON.parse((await svc('status', '--json')).stdout);
    expect(says).toBe('unknown');
  });
});

describe('svc login again', () => {
  it('ends the session of the earlier login, and the browser keeps its own', async () => {
    await app.dataSource.query("DELETE FROM sessions WHERE client_id = 'svc-cli'");
    await browserLogin();
    await browserLogin();
    const own = await app.dataSource.query<{ n: number }[]>(
      "SELECT count(*)::int AS n FROM sessions WHERE client_id = 'svc-cli'",
    );
    expect(own).toEqual([{ n: 1 }]);
    await ada.client.post('/logout', {});
    expect((await svc('status')).status).toBe(0);
    await ada.client.logIn(ada.key, { address: newAddress() });
  });
});

describe('svc logout', () => {
  it('ends the token at the server, removes it here, and keeps the session of the browser', async () => {
    await browserLogin();
    const { access_token: token } = JSON.parse(readFileSync(home.state(app, 'token.json'), 'utf8'));
    expect(await svc('logout')).toMatchObject({ status: 0, stderr: '' });
    expect(readdirSync(home.state(app))).toEqual([]);
    const [row] = await app.dataSource.query<{ n: string }[]>(
      "SELECT count(*) AS n FROM oauth_artifacts WHERE model = 'AccessToken' AND id = sha256($1)",
      [Buffer.from(String(token))],
    );
    expect(Number(row?.n)).toBe(0);
    expect((await ada.client.get('/v1/keys')).status).toBe(200);
    expect(await svc('status')).toMatchObject({ status: 3 });
  });

  it('ends the session of a login that has its own', async () => {
    await home.logIn(app, ada);
    const own = () =>
      app.dataSource.query(
        "SELECT s.id FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.client_id = 'svc-cli' AND u.email = 'ada@svc-login.example'",
      );
    const before = (await own()).length;
    expect(before).toBeGreaterThan(0);
    expect(await svc('logout')).toMatchObject({ status: 0, stderr: '' });
    expect((await own()).length).toBe(before - 1);
  });

  it('revokes with --revoke every SSH certificate that this machine got', async () => {
    const carol = await app.enrolled('carol@svc-login.example');
    await home.logIn(app, carol);
    await svc('ssh', 'cert');
    await svc('ssh', 'cert', '--renew');
    expect(await svc('logout', '--revoke')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('SSH certificates revoked: 2.'),
    });
    expect(readdirSync(home.state(app, 'ssh')).toSorted()).toEqual(['id', 'id.pub']);
    const rows = await app.dataSource.query<{ revoked: boolean }[]>(
      "SELECT revoked_at IS NOT NULL AS revoked FROM ssh_certificates WHERE key_id LIKE 'carol@%'",
    );
    expect(rows).toEqual([{ revoked: true }, { revoked: true }]);
  });

  it('revokes with --revoke also the certificate whose files svc setup ssh --remove took', async () => {
    await home.logIn(app, await app.enrolled('dave@svc-login.example'));
    await svc('setup', 'ssh', '--host', '*.example.com', '--yes');
    await svc('ssh', 'cert');
    await svc('setup', 'ssh', '--remove', '--yes');
    expect(await svc('logout', '--revoke')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('SSH certificates revoked: 1.'),
    });
    expect(readdirSync(home.state(app))).toEqual([]);
  });

  it('removes nothing with --revoke if the server cannot revoke, and says what to do', async () => {
    await home.logIn(app, ada);
    await svc('ssh', 'cert');
    const away = { baseUrl: `http://localhost:${await freePort()}` };
    cpSync(home.state(app), home.state(away), { recursive: true });
    const end = await svc('logout', '--revoke', '--server', away.baseUrl);
    expect(end).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('nothing was removed'),
    });
    expect(existsSync(home.state(away, 'token.json'))).toBe(true);
    await app.dataSource.query("DELETE FROM sessions WHERE client_id = 'svc-cli'");
    expect(await svc('logout', '--revoke')).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('Run: svc login, and then svc logout --revoke'),
    });
  });

  it('removes the files without a network as well, and warns', async () => {
    await home.logIn(app, ada);
    writeFileSync(home.config, JSON.stringify({ server: 'http://localhost:1' }));
    const away = { baseUrl: 'http://localhost:1' };
    home.writeState(away, 'token.json', readFileSync(home.state(app, 'token.json'), 'utf8'));
    home.writeState(away, 'dpop-key.json', readFileSync(home.state(app, 'dpop-key.json'), 'utf8'));
    const end = await svc('logout');
    expect(end).toMatchObject({ status: 0, stderr: expect.stringContaining('/sessions') });
    expect(readdirSync(home.state(away))).toEqual([]);
  });
});

describe('the login of a machine', () => {
  it('a token stolen from the file does not work without its DPoP key', async () => {
    const { token } = await home.logIn(app, ada);
    const get = (headers: Record<string, string>) =>
      app
        .client()
        .get('/v1/keys', { headers })
        .then(({ status }) => status);
    expect(await get({ authorization: `Bearer ${token}` })).toBe(401);
    expect(await get({ authorization: `DPoP ${token}` })).toBe(401);

    const thief = await SvcHome.create();
    await thief.logIn(app, await app.enrolled('thief@svc-login.example'));
    const own = JSON.parse(readFileSync(thief.state(app, 'token.json'), 'utf8'));
    thief.writeState(app, 'token.json', { ...own, access_token: token });
    expect(await thief.run(['keys'])).toMatchObject({ status: 3, stdout: '' });
    await thief.remove();
    expect(await svc('keys')).toMatchObject({ status: 0 });
  });

  it('refuses a file that other accounts can read, and names the remedy', async () => {
    await home.logIn(app, ada);
    chmodSync(home.state(app, 'token.json'), 0o644);
    const end = await svc('status');
    expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining('chmod 600') });
  });

  it.each([
    ['token.json', 'status'],
    ['dpop-key.json', 'keys'],
  ])('names a damaged %s', async (name, command) => {
    await home.logIn(app, ada);
    for (const damaged of ['', '{', '[]', 'null']) {
      home.writeState(app, name, damaged);
      const end = await svc(command);
      expect([damaged, end.status]).toEqual([damaged, 1]);
      expect(end.stderr).toContain(name);
    }
  });

  it('says when the login has ended', async () => {
    await home.logIn(app, ada);
    const token = JSON.parse(readFileSync(home.state(app, 'token.json'), 'utf8'));
    home.writeState(app, 'token.json', { ...token, expires_at: '2026-01-01T00:00:00Z' });
    const end = await svc('status');
    expect(end).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('ended at 2026-01-01 00:00'),
    });
    expect(await svc('keys')).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('svc login'),
    });
  });
});
