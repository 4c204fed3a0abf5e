import '../support/full-scale-only.js';
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startTestApp } from '../support/app.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { DEBIAN_LAPTOP, requires } from '../support/programs.js';
import { git, makeCleanCheckout } from '../support/release/clean-checkout.js';
import { startDebianMachine } from '../support/release/debian-machine.js';
import {
  applicationIn,
  readCodeSignature,
  withNodeOptions,
} from '../support/release/executable-files.js';
import { SSHD_PROGRAMS, startSshd } from '../support/sshd.js';
import { runProgram } from '../support/svc-command.js';
import { removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const FILES = guideBlock('../operations/verify-a-release.md', 'files');
const URL_OF_FILES = 'https://get.example.com/svc';

/** The systems of the executables, and a pattern for the output of `file` for each. */
const FORMATS = {
  'linux-x64': /^ELF 64-bit LSB .*executable, x86-64/,
  'linux-arm64': /^ELF 64-bit LSB .*executable, ARM aarch64/,
  'darwin-x64': /^Mach-O 64-bit x86_64 executable/,
  'darwin-arm64': /^Mach-O 64-bit arm64 executable/,
  'win-x64': /^PE32\+ executable \(console\) x86-64, for MS Windows/,
};
type System = keyof typeof FORMATS;
const SYSTEMS = Object.keys(FORMATS) as System[];

const NEEDS = [
  'root',
  'mounts',
  'a Debian laptop',
  'jq',
  'file',
  'rpm',
  'rpm2cpio',
  'cpio',
  'ruby',
];

requires(...NEEDS, ...SSHD_PROGRAMS).describe('the executables of this checkout', () => {
  let folder: string;
  let made: string;
  let version: string;
  const at = (name: string) => join(made, name);
  const script = () => readFileSync(at(`svc-${version}.mjs`));
  const nameOf = (system: System) =>
    `svc-${version}-${system}${system === 'win-x64' ? '.exe' : '.gz'}`;
  const executable = (system: System) => {
    const bytes = readFileSync(at(nameOf(system)));
    return system === 'win-x64' ? bytes : gunzipSync(bytes);
  };
  /** Writes a changed copy of the Linux x64 executable, and returns its path. */
  const installed = (name: string, change = (bytes: Buffer) => bytes) => {
    const path = join(folder, name);
    writeFileSync(path, change(executable('linux-x64')));
    chmodSync(path, 0o755);
    return path;
  };
  // All variables of the host, because npm needs its registry and its cache.
  const env = { ...process.env, TMPDIR: '/var/tmp' } as Record<string, string>;

  beforeAll(async () => {
    ({ version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')));
    folder = mkdtempSync('/var/tmp/svc-executables-test-');
    made = join(folder, 'made');
    const checkout = join(folder, 'checkout');
    makeCleanCheckout(checkout);
    const command = `npm run --silent release -- ../made --only svc --url ${URL_OF_FILES}`;
    process.stdout.write(await runToSuccess(command, { cwd: checkout, env }));
    git(folder, 'clone', '-q', 'checkout', 'made/svc-server');
  }, 1_800_000);
  afterAll(() => removeDirectory(folder));

  it('have the format of their system, and the same application', async () => {
    await runToSuccess(FILES, { cwd: made, env });
    const applications = SYSTEMS.map((system) => {
      const bytes = executable(system);
      const path = join(folder, system);
      writeFileSync(path, bytes);
      const said = execFileSync('file', ['--brief', path], { encoding: 'utf8' });
      expect(said, system).toMatch(FORMATS[system]);
      return applicationIn(bytes, script());
    });
    const [first = Buffer.alloc(0), ...others] = applications;
    expect(first.length).toBeGreaterThan(100_000);
    expect(others.filter((one) => !one.equals(first))).toEqual([]);
    expect(script().equals(readFileSync(join(ROOT, 'dist/svc.mjs')))).toBe(true);
  });

  it.each(['darwin-x64', 'darwin-arm64'] as const)(
    'have for %s a signature without a key, which covers every page',
    (system) => {
      const bytes = executable(system);
      const right = { identifier: 'svc', isAdHoc: true, wrongPages: [] };
      expect(readCodeSignature(bytes)).toMatchObject(right);
      bytes[5000]! ^= 1;
      expect(readCodeSignature(bytes).wrongPages).toEqual([1]);
    },
  );

  it('have for Windows no rest of the signature of Node', () => {
    const bytes = executable('win-x64');
    const header = bytes.readUInt32LE(0x3c);
    expect(bytes.readBigUInt64LE(header + 24 + 112 + 32)).toBe(0n);
    const sections = header + 24 + bytes.readUInt16LE(header + 20);
    const last = sections + 40 * (bytes.readUInt16LE(header + 6) - 1);
    const end = bytes.readUInt32LE(last + 16) + bytes.readUInt32LE(last + 20);
    expect(bytes.length).toBe(end);
  });

  it('load nothing that a variable or an argument names', async () => {
    const preload = join(folder, 'preload.cjs');
    writeFileSync(preload, 'process.stdout.write("loaded\\n");');
    const program = installed('svc');
    const run = (args: string[], NODE_OPTIONS: string, file = program) =>
      runProgram(file, args, { env: { HOME: folder, NODE_OPTIONS, NODE_PATH: folder } });
    const asMade = { status: 0, stdout: `svc ${version}\n`, stderr: '' };
    expect(await run(['--version'], `--require=${preload}`)).toEqual(asMade);
    expect(await run(['--version'], '--inspect-brk=127.0.0.1:0')).toEqual(asMade);
    expect((await run([`--require=${preload}`], '')).stdout).toBe('');
    // This shows that the check above can fail: a copy that differs in one byte does load the
    // script.
    const open = installed('svc-open', (bytes) => withNodeOptions(bytes, script()));
    expect((await run(['--version'], `--require=${preload}`, open)).stdout).toMatch(/^loaded\n/);
  });

  it('install, log in, set up ssh and open a session on a Debian without Node', async () => {
    await using parts = new AsyncDisposableStack();
    const app = await startTestApp();
    parts.defer(() => app.close());
    const ada = await app.enrolled('ada@laptop.example');
    const authority = await app.client().get('/v1/credentials/ssh/ca');
    const principals = ['ada@laptop.example'];
    const sshd = await startSshd({ authorities: [authority.text.trim()], principals });
    parts.defer(() => sshd.stop());
    const machine = startDebianMachine(parts, DEBIAN_LAPTOP);
    const deb = `svc_${version}_amd64.deb`;
    cpSync(at(deb), join(machine.root, 'srv', deb));
    // Every machine has this file, but debootstrap does not make it.
    writeFileSync(join(machine.root, 'etc/hosts'), '127.0.0.1 localhost\n');
    await machine.run(`! command -v node\ndpkg -i /srv/${deb}`);
    expect(await machine.run('svc --version; dpkg --verify svc')).toBe(`svc ${version}\n`);
    expect(await machine.run('bash -n /usr/share/bash-completion/completions/svc')).toBe('');

    const login = machine.start(`cd; svc login --server ${app.baseUrl} --device`);
    await vi.waitFor(() => expect(login.output()).toMatch(/[A-Z]{4}-[A-Z]{4}/), 60_000);
    const [userCode] = /\b[A-Z]{4}-[A-Z]{4}\b/.exec(login.output())!;
    await ada.client.logIn(ada.key);
    await ada.client.post('/device/approve', { user_code: userCode });
    expect(await login.ended, login.output()).toBe(0);
    expect(login.output()).toContain('Logged in as ada@laptop.example');

    const said = await machine.run('cd; svc setup ssh --host 127.0.0.1 --yes; svc doctor || true');
    expect(said).toContain("exec \"'/usr/bin/svc' ssh check");
    expect(said).toMatch(/node .*which is part of svc/);
    const options = '-o StrictHostKeyChecking=no -o BatchMode=yes';
    const session = `cd; ssh ${options} -p ${sshd.port} root@127.0.0.1 echo in`;
    expect((await machine.run(session)).trimEnd().split('\n').at(-1)).toBe('in');
    await machine.run('dpkg --purge svc; ! command -v svc');
  });

  it('are packages of RPM that rpm accepts, installs, verifies and removes', async () => {
    const names = ['x86_64', 'aarch64'].map((arch) => `svc-${version}-1.${arch}.rpm`);
    for (const name of names) {
      expect(await runToSuccess(`rpm -Kv ${name}`, { cwd: made })).toBe(
        `${name}:\n    Header SHA256 digest: OK\n    Header SHA1 digest: OK\n    Payload SHA256 digest: OK\n`,
      );
      expect(await runToSuccess(`rpm -qip ${name}`, { cwd: made })).toContain('Name        : svc');
      expect(await runToSuccess(`rpm -qp --scripts ${name}`, { cwd: made })).toBe('');
    }
    const root = join(folder, 'rpm-root');
    const rpm = `rpm --root ${root}`;
    mkdirSync(root);
    // `--nodeps`, because the libraries come from other packages, which this folder does not have.
    const install = `rpm --root ${root} --initdb; ${rpm} -i --nodeps --force-debian ${names[0]} 2>&1`;
    await runToSuccess(install, { cwd: made });
    expect(readFileSync(join(root, 'usr/bin/svc')).equals(executable('linux-x64'))).toBe(true);
    const command = `${root}/usr/bin/svc --version; ${rpm} -V --nodeps svc; ${rpm} -e svc`;
    expect(await runToSuccess(command)).toBe(`svc ${version}\n`);
    expect((await runToSuccess(`find ${root}/usr -type f`)).includes('svc')).toBe(false);
    const unpack = `mkdir cpio; cd cpio; rpm2cpio ../made/${names[1]} | cpio -id --quiet; find . -type f`;
    const files = (await runToSuccess(unpack, { cwd: folder })).trimEnd().split('\n');
    expect(files.toSorted()).toEqual([
      './usr/bin/svc',
      './usr/share/bash-completion/completions/svc',
      './usr/share/doc/svc/copyright',
      './usr/share/fish/vendor_completions.d/svc.fish',
      './usr/share/zsh/site-functions/_svc',
    ]);
  });

  it('have manifests with their hashes', async () => {
    const sums = new Map(
      readFileSync(at('SHA256SUMS'), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => [line.slice(66), line.slice(0, 64)]),
    );
    const formula = readFileSync(at('svc.rb'), 'utf8');
    await runToSuccess('ruby -c svc.rb', { cwd: made });
    for (const system of SYSTEMS.filter((one) => one !== 'win-x64')) {
      const name = nameOf(system);
      expect(formula).toContain(`url "${URL_OF_FILES}/${name}"\n      sha256 "${sums.get(name)}"`);
    }
    const windows = nameOf('win-x64');
    const { architecture } = JSON.parse(readFileSync(at('svc.json'), 'utf8'));
    const hash = sums.get(windows);
    expect(architecture['64bit']).toEqual({ url: `${URL_OF_FILES}/${windows}#/svc.exe`, hash });
    const toJson = 'require "yaml"; require "json"; puts JSON.dump(YAML.load(STDIN.read))';
    const installer = await runToSuccess(
      `ruby -e '${toJson}' < SvcServer.Svc.installer.yaml; ruby -ryaml -e 'ARGV.each { |f| YAML.load_file(f) }' SvcServer.Svc.*yaml`,
      { cwd: made },
    );
    expect(JSON.parse(installer)).toMatchObject({
      PackageIdentifier: 'SvcServer.Svc',
      PackageVersion: version,
      InstallerType: 'portable',
      Installers: [
        {
          Architecture: 'x64',
          InstallerUrl: `${URL_OF_FILES}/${windows}`,
          InstallerSha256: hash?.toUpperCase(),
        },
      ],
    });
  });
});
