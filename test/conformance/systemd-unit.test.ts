import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { Client } from '../support/client.js';
import { collected } from '../support/collected-process.js';
import { createTestDatabase } from '../support/database.js';
import { startDatabaseProxy } from '../support/database-proxy.js';
import { freePort } from '../support/free-port.js';
import '../support/full-scale-only.js';
import { requires } from '../support/programs.js';
import { providerEnvironment, TEST_CLIENT } from '../support/provider-environment.js';
import { settingsOf, startAsUnit, UNIT } from '../support/sandboxed-unit.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const settings = settingsOf(readFileSync(UNIT, 'utf8'));
/** The highest exposure level that the unit may have, on systemd's scale from 0 to 10. */
const EXPOSURE = 2;

requires('systemd-analyze').describe('the unit of systemd', () => {
  it('exposes at most 2.0 by the judgement of systemd', () => {
    const judged = spawnSync(
      'systemd-analyze',
      ['--no-pager', '--offline=true', `--threshold=${EXPOSURE * 10}`, 'security', UNIT],
      { encoding: 'utf8' },
    );
    expect(judged.status, judged.stdout + judged.stderr).toBe(0);
    const [, level] = /exposure level for svc-server.service: ([\d.]+)/.exec(judged.stdout) ?? [];
    expect(Number(level)).toBeLessThanOrEqual(EXPOSURE);
  });
});

requires('bwrap', 'systemd-analyze', 'gcc').describe('a machine with the unit', () => {
  const machine = async (parts: AsyncDisposableStack, shared: readonly string[] = []) => {
    const folder = await makeTemporaryDirectory();
    parts.defer(() => removeDirectory(folder));
    return { folder, shared };
  };
  const service = async (parts: AsyncDisposableStack, words: readonly string[]) => {
    const database = await createTestDatabase();
    parts.defer(() => database.drop());
    const port = await freePort();
    const baseUrl = `http://localhost:${port}`;
    const redirectUri = `${baseUrl}/oauth/callback`;
    const idp = await startDemoIdentityProvider({ ...TEST_CLIENT, redirectUri });
    parts.defer(() => idp.close());
    // PostgreSQL's own socket would admit only the user of the test server, so the service uses a
    // proxy.
    const socket = await startDatabaseProxy(database.url);
    parts.defer(() => socket.close());
    const [, shared = ''] = /host=([^&]+)/.exec(socket.url) ?? [];
    const at = await machine(parts, [decodeURIComponent(shared)]);
    const child = startAsUnit(at, words, {
      SVC_BASE_URL: baseUrl,
      SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
      SVC_DATABASE_URL: socket.url,
      SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1/128',
      ...providerEnvironment(idp.issuer),
    });
    const { until, output } = collected(parts, child);
    await until(() => /is served on port/.test(output()));
    return { ...at, baseUrl };
  };

  it('passes systemd-analyze verify with the release and Node at the paths of the unit', async () => {
    await using parts = new AsyncDisposableStack();
    const path = '/opt/svc-server/deploy/svc-server.service';
    const verify = ['/usr/bin/systemd-analyze', '--man=no', 'verify', path];
    const { ended, output } = collected(parts, startAsUnit(await machine(parts), verify, {}));
    expect({ status: await ended, said: output() }).toEqual({ status: 0, said: '' });
  });

  it('refuses a write outside the state directory, a privileged call, and a socket of another family', async () => {
    await using parts = new AsyncDisposableStack();
    const script = `
      const fs = require('node:fs');
      const tried = (path) => { try { fs.writeFileSync(path, ''); return 'written'; } catch (e) { return e.code; } };
      const chown = (() => { try { fs.chownSync('/tmp/a', 64999, 64999); return 'changed'; } catch (e) { return e.code; } })();
      // It opens a netlink socket.
      const family = (() => { try { require('node:os').networkInterfaces(); return 'opened'; } catch { return 'refused'; } })();
      console.log([tried('/tmp/a'), tried('/var/lib/svc-server/a'), tried('/etc/a'), tried('/opt/svc-server/a'), tried('/root/a'), chown, family].join());`;
    const words = ['/usr/local/bin/node', '-e', script];
    const { ended, output } = collected(parts, startAsUnit(await machine(parts), words, {}));
    await ended;
    expect(output()).toBe('written,written,EROFS,EROFS,EROFS,EPERM,refused\n');
  });

  it('starts the service by the command of the unit', async () => {
    await using parts = new AsyncDisposableStack();
    const words = settings.get('ExecStart')?.[0]?.split(' ') ?? [];
    const { baseUrl } = await service(parts, words);
    const { status, json } = await new Client(baseUrl).get('/health/ready');
    expect({ status, json }).toEqual({ status: 200, json: { status: 'ready' } });
  });

  it('a person enrolls a key, logs in, and finds the key of the SSH authority in the state', async () => {
    await using parts = new AsyncDisposableStack();
    // This script starts the service in place of dist/main.js, because production refuses the
    // software key of the test.
    const [node = ''] = settings.get('ExecStart')?.[0]?.split(' ') ?? [];
    const key = new SoftwareKey();
    const script = '/opt/svc-server/test/support/trusting-server.js';
    const { baseUrl, folder } = await service(parts, [node, script, key.rootPem]);
    const person = new Client(baseUrl);
    await person.signIn('ada@unit.example');
    expect((await person.enroll(key)).status).toBe(200);
    const again = new Client(baseUrl);
    await again.signIn('ada@unit.example');
    expect((await again.logIn(key)).status).toBe(200);
    expect((await again.get('/v1/credentials/ssh/ca')).text).toMatch(/^ssh-ed25519 /);
    expect(readdirSync(join(folder, 'state'))).toContain('ssh_ca_key');
    expect(dirname(settings.get('EnvironmentFile')?.[0] ?? '')).toBe('/etc/svc-server');
  });
});
