import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { expect, it } from 'vitest';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { clientThroughProxy, startCollected } from '../support/collected-process.js';
import { startDebianPostgres } from '../support/debian-postgres.js';
import { freePort } from '../support/free-port.js';
import '../support/full-scale-only.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { requires } from '../support/programs.js';
import { settingsOf, UNIT } from '../support/sandboxed-unit.js';
import { SSHD_PROGRAMS, startSshd } from '../support/sshd.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const HOST = 'login.example.com';
const LOGIN = `https://${HOST}`;

/**
 * Commands that make a mount namespace look like a new machine. They mount a copy of /etc, empty
 * folders in /var/lib, and the release and Node at the paths of the guide. All other folders are
 * the host's.
 */
const ENTER = `
mount --bind "$FOLDER/etc" /etc
mount --bind "$FOLDER/lib" /var/lib
mount -t tmpfs none /opt
mount -t tmpfs none /usr/local/bin
mkdir /opt/svc-server
mount --bind "$ROOT" /opt/svc-server
touch /usr/local/bin/node
mount --bind "$NODE" /usr/local/bin/node
`;

requires('root', 'mounts', 'reachable', 'postgresql', 'caddy', 'curl', ...SSHD_PROGRAMS).describe(
  'one machine, by the commands of the guide',
  () => {
    it('makes the user, the database and the settings, serves behind Caddy, and ssh logs in', async () => {
      await using parts = new AsyncDisposableStack();
      const folder = await makeTemporaryDirectory();
      parts.defer(() => removeDirectory(folder));
      execFileSync('cp', ['-a', '/etc', folder]);
      mkdirSync(join(folder, 'lib'));
      const postgres = await startDebianPostgres();
      parts.defer(() => postgres.stop());
      const [https, http, service] = [await freePort(), await freePort(), await freePort()];
      const baseUrl = `${LOGIN}:${https}`;
      const client = { clientId: 'svc', clientSecret: 'of the client' };
      const redirectUri = `${baseUrl}/oauth/callback`;
      const idp = await startDemoIdentityProvider({ ...client, redirectUri });
      parts.defer(() => idp.close());

      const machine = { FOLDER: folder, ROOT, NODE: process.execPath };
      const onMachine = (commands: string) => [
        'unshare',
        '--mount',
        '--propagation',
        'private',
        'bash',
        '-euo',
        'pipefail',
        '-c',
        ENTER + commands,
      ];
      // The PostgreSQL of the test listens on a loopback port. The guide uses Debian's socket.
      const environment = {
        ...machine,
        PGHOST: '127.0.0.1',
        PGPORT: String(postgres.port),
        PGUSER: 'postgres',
      };
      const prepared = startCollected(
        parts,
        onMachine(
          guideBlock('one-vm.md', 'prepare') +
            // Replaces what belongs to the machine: its ports, its provider and the URL of
            // PostgreSQL.
            guideBlock('one-vm.md', 'init', {
              [LOGIN]: baseUrl,
              'https://idp.example.com': idp.issuer,
              'replace me': client.clientSecret,
              'postgres://svc-server@/svc-server?host=/run/postgresql': postgres.url(
                'svc-server',
                'svc-server',
              ),
              SVC_ALLOWED_DOMAINS: `SVC_LISTEN_ADDR=127.0.0.1:${service}\nSVC_ALLOWED_DOMAINS`,
            }),
        ),
        environment,
      );
      expect(await prepared.ended, prepared.output()).toBe(0);
      expect(prepared.output()).toContain(`${redirectUri} is registered`);
      expect(prepared.output()).toContain('The first admin (you@example.com)');
      expect(prepared.output()).not.toContain(client.clientSecret);

      // Starts the command of the systemd unit with its environment file. A script that trusts the
      // test's software key replaces dist/main.js.
      const settings = settingsOf(readFileSync(UNIT, 'utf8'));
      const [node = '', script = ''] = settings.get('ExecStart')?.[0]?.split(' ') ?? [];
      const trusting = script.replace('dist/main.js', 'test/support/trusting-server.js');
      const key = new SoftwareKey();
      const file = settings.get('EnvironmentFile')?.[0] ?? '';
      const start = `runuser -u svc-server -- ${node} --env-file=${file} ${trusting} "$KEY"`;
      const server = startCollected(parts, onMachine(`exec ${start}`), {
        ...machine,
        KEY: key.rootPem,
      });
      const caddyfile = guideBlock('one-vm.md', 'caddy', {
        [HOST]: baseUrl,
        '127.0.0.1:3000': `127.0.0.1:${service}`,
      });
      const options = `local_certs\nskip_install_trust\nadmin off\nservers {\nprotocols h1 h2\n}\nhttp_port ${http}\ndefault_bind 127.0.0.1\nstorage file_system ${folder}/caddy`;
      writeFileSync(join(folder, 'Caddyfile'), `{\n${options}\n}\n${caddyfile}`);
      const caddy = startCollected(
        parts,
        ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')],
        { HOME: folder },
      );
      await server.until(() => /is served on port/.test(server.output()));
      const authority = join(folder, 'caddy/pki/authorities/local/root.crt');
      const certificate = join(folder, `caddy/certificates/local/${HOST}/${HOST}.crt`);
      await caddy.until(() => existsSync(authority) && existsSync(certificate));

      const ready = guideBlock('one-vm.md', 'ready', { [LOGIN]: baseUrl });
      const resolved = `--resolve ${HOST}:${https}:127.0.0.1 --cacert ${authority}`;
      const curl = `curl() { command curl ${resolved} "$@"; }\n`;
      expect(await runToSuccess(curl + ready)).toBe('{"status":"ready"}');

      const person = clientThroughProxy(parts, baseUrl, authority);
      await person.signIn('you@example.com', '/', 'corp');
      expect((await person.enroll(key)).status).toBe(200);
      expect((await person.get('/admin/members')).status).toBe(200);
      const sshd = await startSshd({
        authorities: [(await person.get('/v1/credentials/ssh/ca')).text.trim()],
        principals: ['you@example.com'],
      });
      parts.defer(() => sshd.stop());
      const own = join(sshd.folder, 'own');
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', own]);
      const public_key = readFileSync(`${own}.pub`, 'utf8').trim();
      const { json } = await person.post('/v1/credentials/ssh', { public_key });
      writeFileSync(`${own}-cert.pub`, `${json.certificate}\n`);
      expect(await sshd.login(own, `${own}-cert.pub`)).toMatchObject({ accepted: true });

      const written = parseEnv(readFileSync(join(folder, file), 'utf8'));
      expect(written).toMatchObject({ SVC_DATA_DIR: '/var/lib/svc-server' });
      // The script has marked the database as one of the tests, so the operator's command refuses
      // it.
      const check = startCollected(parts, onMachine(guideBlock('one-vm.md', 'check')), machine);
      expect(await check.ended).toBe(1);
      expect(check.output()).toMatch(/^ok +provider corp +publishes what a sign-in needs$/m);
      expect(check.output()).toMatch(/^FAILED +database +.*test/m);
    });
  },
);
