import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { createTestDatabase } from '../support/database.js';
import { Client } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { HOST_PROGRAMS, JoiningHost } from '../support/joining-host.js';
import { idOf, orgApi } from '../support/org-api.js';
import { requires } from '../support/programs.js';
import { PUBLIC_URL, PublicName } from '../support/public-name.js';
import { TEST_CLIENT } from '../support/provider-environment.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

const ALICE = 'alice@runbooks.example';
const BOB = 'bob@runbooks.example';

requires('curl').describe('the runbook of an identity provider that is away', () => {
  let idp: DemoIdentityProvider;
  let app: TestApp;
  let ada: EnrolledUser;
  let environment: Record<string, string>;
  beforeAll(async () => {
    const baseUrl = `http://localhost:${await freePort()}`;
    idp = await startDemoIdentityProvider({
      ...TEST_CLIENT,
      redirectUri: `${baseUrl}/oauth/callback`,
    });
    environment = {
      SVC_BASE_URL: baseUrl,
      SVC_LISTEN_ADDR: `127.0.0.1:${new URL(baseUrl).port}`,
      SVC_IDP_DEMO_ISSUER: idp.issuer,
    };
    app = await startTestApp({ environment });
    const client = new Client(baseUrl);
    const key = app.newKey();
    await client.signIn('ada@runbooks.example');
    await client.enroll(key);
    ada = { client, key };
  });
  afterAll(() => app.close());

  const askProvider = () =>
    runToSuccess(guideBlock('runbooks/provider-away.md', 'provider-document'), {
      env: { ISSUER: idp.issuer },
    });

  it('the command shows the issuer while the provider answers, and fails when it is away', async () => {
    expect(await askProvider()).toContain(`"issuer":"${idp.issuer}"`);
    await idp.close();
    await expect(askProvider()).rejects.toThrow(/status/);
  });

  it('users with a key log in and get certificates, and a new sign-in ends with an error', async () => {
    expect((await ada.client.logIn(ada.key)).status).toBe(200);
    const issued = await ada.client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    expect(issued.status).toBe(200);
    const redirect = await ada.client.get('/login?provider=demo');
    const state = new URL(redirect.headers.get('location') ?? '').searchParams.get('state') ?? '';
    const query = new URLSearchParams({ state, code: 'x', iss: idp.issuer }).toString();
    const back = await ada.client.get(`/oauth/callback?${query}`);
    expect(back.status).toBeGreaterThanOrEqual(400);
  });

  it('a service that is started meanwhile does not start', async () => {
    const port = await freePort();
    const other = {
      ...environment,
      SVC_BASE_URL: `http://localhost:${port}`,
      SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
    };
    await expect(startTestApp({ environment: other })).rejects.toThrow(/discovery failed/);
  });
});

requires('curl').describe('the runbook of a mass lock-out', () => {
  let name: PublicName;
  let app: TestApp;
  beforeAll(async () => {
    name = await PublicName.open();
    app = await name.startApp();
  });
  afterAll(async () => {
    await app.close();
    await name.close();
  });

  it('the look from outside shows health, readiness, the base URL and two clocks that agree', async () => {
    const block = guideBlock('runbooks/mass-lock-out.md', 'outside');
    const printed = await runToSuccess(block, { env: name.env });
    const [health, ready, issuer, theirs = '', ours = ''] = printed.trim().split(/\r?\n/);
    expect(health).toBe('200');
    expect(ready).toBe('{"status":"ready"}');
    expect(issuer).toBe(`"issuer":"${PUBLIC_URL}"`);
    const seconds = Math.abs(Date.parse(theirs.slice('date:'.length)) - Date.parse(ours)) / 1000;
    expect(seconds).toBeLessThan(30);
  });
});

requires('curl', 'psql', ...HOST_PROGRAMS).describe('the runbook of a leaked CA', () => {
  it('the next key signs alone, and a server trusts it alone', async () => {
    await using parts = new AsyncDisposableStack();
    const folder = await makeTemporaryDirectory();
    parts.defer(() => removeDirectory(folder));
    const database = await createTestDatabase();
    parts.defer(() => database.drop());
    const name = await PublicName.open();
    parts.defer(() => name.close());
    const { env } = name;
    const environment = { SVC_SSH_CA_KEY_PATH: join(folder, 'ssh_ca_key') };
    // The test replaces folders of the system by its own, because it must not write into them.
    const places = { '/var/lib/svc': folder };
    let app = await name.startApp({ database, environment });
    parts.defer(() => app.close());
    const restart = async () => {
      await app.close();
      app = await name.startApp({ database, environment });
    };
    const published = async () => {
      const block = guideBlock('runbooks/ca-leak.md', 'two-keys');
      return [...(await runToSuccess(block, { env })).matchAll(/SHA256:\S+/g)].map(([key]) => key);
    };
    const host = new JoiningHost(await freePort());
    parts.defer(() => removeDirectory(host.folder));
    const ours = `sh -s -- ${host.paths.join(' ')} --no-reload --schedule systemd`;
    const trusted = async () => {
      const block = guideBlock('runbooks/ca-leak.md', 'trusted', { '/etc/ssh': host.etc });
      return [...(await runToSuccess(block)).matchAll(/SHA256:\S+/g)].map(([key]) => key);
    };
    const [leaked = ''] = await published();
    await runToSuccess(
      `curl -fsS ${PUBLIC_URL}/install-host.sh | ${ours} --account root --principal ${ALICE}`,
      { env },
    );
    expect(await trusted()).toEqual([leaked]);

    await runToSuccess(guideBlock('runbooks/ca-leak.md', 'next-key', places));
    await restart();
    const [first, next = ''] = await published();
    expect(first).toBe(leaked);
    expect(next).not.toBe(leaked);

    await runToSuccess(guideBlock('runbooks/ca-leak.md', 'swap', places));
    await restart();
    expect(await published()).toEqual([next]);
    const block = guideBlock('runbooks/ca-leak.md', 'host', {
      'sh -s --': ours,
      'alice@example.com': ALICE,
    });
    await runToSuccess(block, { env: { ...env, FINGERPRINT: next } });
    expect(await trusted()).toEqual([next]);
    expect(readFileSync(join(host.etc, 'svc/principals/root'), 'utf8')).toContain(ALICE);

    const alice = app.client();
    await alice.signIn(ALICE);
    await alice.enroll(app.newKey());
    const { json } = await alice.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    const serials = await runToSuccess(guideBlock('runbooks/ca-leak.md', 'serials'), {
      env: { SVC_DATABASE_URL: database.url },
    });
    expect(serials).toContain(json.serial);
  });
});

requires('curl', ...HOST_PROGRAMS).describe('the runbook of a stolen laptop', () => {
  it('a server learns of a revocation at once by its refresh', async () => {
    await using parts = new AsyncDisposableStack();
    const name = await PublicName.open();
    parts.defer(() => name.close());
    const app = await name.startApp();
    parts.defer(() => app.close());
    const host = new JoiningHost(await freePort());
    parts.defer(() => removeDirectory(host.folder));
    const script = (await app.client().get('/install-host.sh')).text;
    const joined = await host.run(script, host.joining, { environment: name.env });
    expect(joined).toMatchObject({ status: 0 });
    const { client: admin } = await app.enrolled(ALICE);
    const { client: bob } = await app.enrolled(BOB);
    const { json } = await bob.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    const refresh = guideBlock('runbooks/stolen-laptop.md', 'refresh', {
      '/usr/local/sbin': host.sbin,
      '/etc/ssh': host.etc,
    });
    const { env } = name;
    expect(await runToSuccess(refresh, { env })).not.toContain(json.serial);
    const path = `/members/${await idOf(app, BOB)}/deactivate`;
    expect((await orgApi(admin, 'POST', path)).status).toBe(200);
    expect(await runToSuccess(refresh, { env })).toContain(json.serial);
  });
});
