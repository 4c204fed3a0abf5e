import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SMALL_LOCK } from '../../support/release/small-release.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

const scripts = new URL('../../../scripts/release/', import.meta.url);

interface Runtime {
  readonly name: string;
  readonly entry: { readonly version: string; readonly integrity: string };
}

interface Scripts {
  readonly runtimePackages: () => Runtime[];
  readonly signAdHoc: (path: string, identifier: string) => void;
  readonly removeSignature: (path: string) => void;
  readonly rpmVersion: (version: string) => string;
  readonly manifestsOf: (options: object) => Record<string, string>;
  readonly sbomOf: (options: object) => {
    readonly components: readonly { readonly purl: string; readonly hashes?: readonly object[] }[];
    readonly dependencies: readonly { readonly ref: string; readonly dependsOn: string[] }[];
  };
}

const names = ['runtimes', 'macho-signature', 'pe-signature', 'rpm', 'manifests'];
const modules = await Promise.all([
  import(new URL('sbom.js', scripts).href) as Promise<object>,
  ...names.map((name) => import(new URL(`command/${name}.js`, scripts).href) as Promise<object>),
]);
const release = Object.assign({}, ...modules) as Scripts;

describe('the Node of the executables', () => {
  it('is one version for five systems, each package with a hash of its own', () => {
    const runtimes = release.runtimePackages();
    expect(new Set(runtimes.map(({ entry }) => entry.version)).size).toBe(1);
    expect(runtimes.map(({ name }) => name)).toHaveLength(5);
    const hashes = new Set(runtimes.map(({ entry }) => entry.integrity));
    expect(hashes.size).toBe(5);
    for (const hash of hashes) expect(hash).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/);
  });

  it('is in the list of packages with the command, also without the service', () => {
    const { components, dependencies } = release.sbomOf({
      lock: { ...SMALL_LOCK, version: '1.2.3' },
      nodes: [],
      runtimes: release.runtimePackages(),
      commit: 'of this',
      time: 1,
    });
    const [command, ...nodes] = components.map(({ purl }) => purl);
    expect(command).toBe('pkg:generic/svc-server/cli@1.2.3');
    expect(nodes).toHaveLength(5);
    expect(components.filter(({ hashes }) => hashes === undefined)).toHaveLength(1);
    const row = (ref: string) => dependencies.find((one) => one.ref === ref)?.dependsOn;
    expect(row('pkg:generic/svc-server@1.2.3')).toEqual([command]);
    expect(row(command!)).toEqual(nodes);
  });
});

describe('a program of another format', () => {
  let folder: string;
  beforeAll(async () => (folder = await makeTemporaryDirectory()));
  afterAll(() => removeDirectory(folder));

  it('is neither signed nor changed', () => {
    const file = (name: string, bytes: Buffer) => {
      writeFileSync(join(folder, name), bytes);
      return join(folder, name);
    };
    const elf = file('elf', Buffer.concat([Buffer.from('\x7fELF'), Buffer.alloc(500)]));
    expect(() => release.signAdHoc(elf, 'svc')).toThrow('no 64-bit Mach-O file');
    expect(() => release.removeSignature(elf)).toThrow('no PE file');
    const signed = Buffer.alloc(500);
    signed.writeUInt32LE(0xfeedfacf, 0);
    signed.writeUInt32LE(1, 16);
    signed.writeUInt32LE(16, 20);
    signed.writeUInt32LE(0x1d, 32);
    signed.writeUInt32LE(16, 36);
    expect(() => release.signAdHoc(file('signed', signed), 'svc')).toThrow('a signature already');
  });
});

describe('a release candidate', () => {
  it('is older than its release for RPM', () => {
    expect(release.rpmVersion('1.2.3-rc.1')).toBe('1.2.3~rc.1');
  });
});

describe('the manifests', () => {
  it('name the address, the hash and the version of each system', () => {
    const systems = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64', 'win-x64'];
    const files = Object.fromEntries(
      systems.map((system, n) => [
        system,
        { name: `svc-1.2.3-${system}`, sha256: `${n}a`.repeat(32) },
      ]),
    );
    const made = release.manifestsOf({
      version: '1.2.3',
      url: 'https://get.example.com/svc',
      files,
      summary: 'The command',
    });
    expect(Object.keys(made).toSorted()).toEqual([
      'SvcServer.Svc.installer.yaml',
      'SvcServer.Svc.locale.en-US.yaml',
      'SvcServer.Svc.yaml',
      'svc.json',
      'svc.rb',
    ]);
    const formula = made['svc.rb'] ?? '';
    for (const system of systems.slice(0, 4)) {
      const { name, sha256 } = files[system]!;
      expect(formula).toContain(
        `url "https://get.example.com/svc/${name}"\n      sha256 "${sha256}"`,
      );
    }
    expect(made['SvcServer.Svc.installer.yaml']).toContain(
      `InstallerSha256: ${files['win-x64']!.sha256.toUpperCase()}`,
    );
  });
});
