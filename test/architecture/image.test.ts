import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { reachableFrom, readSource, sourceFiles } from './import-graph.js';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(resolve(ROOT, path), 'utf8');

/** One instruction of a Dockerfile, with its lines joined. */
interface Instruction {
  readonly keyword: string;
  readonly rest: string;
}

/** The release takes its files by the same script. */
const DOCKERFILE_SCRIPT = new URL('../../scripts/release/dockerfile.js', import.meta.url).href;
const { stagesOf } = (await import(DOCKERFILE_SCRIPT)) as {
  readonly stagesOf: (dockerfile: string) => Instruction[][];
};

/** Returns the arguments of every instruction with a keyword, in order. */
function said(stage: readonly Instruction[], keyword: string): string[] {
  return stage.filter((one) => one.keyword === keyword).map(({ rest }) => rest);
}

/** Returns the sources that a stage copies; `build:` marks those from the build stage. */
function copiedBy(stage: readonly Instruction[]): string[] {
  return said(stage, 'COPY').flatMap((rest) => {
    const [, from, paths] = /^(?:--from=(\S+)\s+)?(.*)$/.exec(rest) ?? [];
    const sources = (paths ?? '').split(/\s+/).slice(0, -1);
    return sources.map((source) => (from === undefined ? source : `${from}:${source}`));
  });
}

/**
 * Returns the URL of the health check in an environment, and its exit status after the given
 * response.
 */
async function healthCheck(env: Record<string, string>, ok: boolean) {
  const command = said(image, 'HEALTHCHECK').join().split(' CMD ')[1] ?? '';
  const [node, flag, script = ''] = JSON.parse(command) as string[];
  expect([node, flag]).toEqual(['node', '-e']);
  let asked: unknown;
  const code = await new Promise((exit) => {
    const fetch = async (url: string) => {
      asked = url;
      return { ok };
    };
    runInNewContext(script, { process: { env, exit }, fetch });
  });
  return { asked, code };
}

const stages = stagesOf(read('Dockerfile'));
const [build = [], image = []] = stages;

describe('the production image', () => {
  it('is built in two stages, both on the required Node version', () => {
    expect(stages).toHaveLength(2);
    expect([...said(build, 'FROM'), ...said(image, 'FROM')]).toEqual([
      'node:24-slim AS build',
      'node:24-slim',
    ]);
  });

  it('never contains the demo or a stand-in: neither is in the context that it is built from', () => {
    expect(sourceFiles('src/demo').length).toBeGreaterThan(5);
    expect(read('.dockerignore').split('\n')).toContain('src/demo');
    const packages = copiedBy(build).filter((source) => source.startsWith('packages'));
    expect(packages).toEqual([
      'packages/arguments',
      'packages/markup',
      'packages/openssh',
      'packages/scim-language',
      'packages/svc',
      'packages/webauthn-policy',
    ]);
    const builds = said(build, 'RUN').filter((command) => command.includes('npm run build'));
    expect(builds).toEqual(['npm run build']);
  });

  it('copies only named files: neither sources nor tests nor the whole folder', () => {
    expect(copiedBy(image).toSorted()).toEqual([
      '.npmrc',
      'LICENSE',
      'build:/app/dist',
      'build:/app/packages/arguments/dist',
      'build:/app/packages/markup/dist',
      'build:/app/packages/openssh/dist',
      'build:/app/packages/scim-language/dist',
      'build:/app/packages/webauthn-policy/dist',
      'config',
      'migrations',
      'package-lock.json',
      'package.json',
      'packages/arguments/package.json',
      'packages/markup/package.json',
      'packages/openssh/package.json',
      'packages/scim-language/package.json',
      'packages/webauthn-policy/package.json',
    ]);
    expect(copiedBy([{ keyword: 'COPY', rest: '. .' }])).toEqual(['.']);
  });

  it('leaves out the tools and the embedded PostgreSQL', () => {
    const installs = said(image, 'RUN').filter((command) => command.includes('npm ci'));
    expect(installs).toHaveLength(1);
    expect(installs[0]).toMatch(/^npm ci --omit=dev --omit=optional(?=\s)/);
  });

  it('runs as an unprivileged user, and forwards signals to the process', () => {
    const last = image.map(({ keyword }) => keyword);
    expect(said(image, 'USER')).toEqual(['node']);
    expect(last.lastIndexOf('USER')).toBeGreaterThan(last.lastIndexOf('COPY'));
    expect(last.lastIndexOf('USER')).toBeGreaterThan(last.lastIndexOf('RUN'));
    expect(JSON.parse(said(image, 'CMD').join())).toEqual(['node', 'dist/main.js']);
    expect(said(image, 'HEALTHCHECK').join()).toMatch(/ CMD \["node", .*\/health.*\]$/);
  });

  it('is checked for health where the process listens: plain HTTP on its port, or TLS on the redirecting port', async () => {
    const ask = async (env: Record<string, string>) => (await healthCheck(env, true)).asked;
    expect(await ask({})).toBe('http://localhost:3000/health');
    expect(await ask({ SVC_LISTEN_ADDR: '[::]:8080' })).toBe('http://localhost:8080/health');
    const tls = { SVC_TLS_CERT: '/tls/tls.crt', SVC_LISTEN_ADDR: '[::]:8080' };
    expect(await ask(tls)).toBe('http://localhost:80/health');
    expect(said(image, 'EXPOSE')).toEqual(['3000 443 80 8443']);

    expect((await healthCheck({}, true)).code).toBe(0);
    expect((await healthCheck({}, false)).code).toBe(1);
  });

  it('is built from a context without secrets and data', () => {
    const rules = read('.dockerignore')
      .split('\n')
      .filter((line) => /^[^#\s]/.test(line));
    expect(rules[0]).toBe('*');
    expect(rules.filter((rule) => !rule.startsWith('!'))).toEqual([
      '*',
      'packages/*/dist',
      'src/demo',
    ]);
    const admitted = rules.filter((rule) => rule.startsWith('!')).map((rule) => rule.slice(1));
    const fromContext = [...copiedBy(build), ...copiedBy(image)].filter(
      (source) => !source.startsWith('build:'),
    );
    const admittedFor = (source: string) =>
      admitted.find((rule) => source === rule || source.startsWith(`${rule}/`)) ?? source;
    const needed = new Set(fromContext.map(admittedFor));
    expect(admitted.toSorted()).toEqual([...needed].toSorted());
  });

  it('contains every package that production imports', () => {
    const declaredIn = (path: string): Record<string, string> =>
      JSON.parse(read(path)).dependencies ?? {};
    const manifests = copiedBy(image).filter((source) => source.endsWith('package.json'));
    const dependencies = Object.assign({}, ...manifests.map(declaredIn)) as object;
    const reached = [
      ...reachableFrom('src/main.ts'),
      ...reachableFrom('src/migrate.ts'),
      ...reachableFrom('src/admin.ts'),
    ];
    const own = reached.flatMap((path) => /^packages\/[^/]+/.exec(path) ?? []);
    const outputs = copiedBy(image).flatMap(
      (source) => /^build:\/app\/(packages\/[^/]+)\/dist$/.exec(source)?.[1] ?? [],
    );
    expect([...new Set(own)].toSorted()).toEqual(outputs.toSorted());
    const imported = reached
      .flatMap((path) => readSource(path).imports)
      .filter((target) => !/^(?:node:|src\/|packages\/)/.test(target))
      .map((target) => /^(?:@[^/]+\/)?[^/]+/.exec(target)?.[0] ?? target);
    const packages = new Set(imported);
    expect(packages).toContain('fido2-lib');
    expect([...packages].filter((name) => !Object.hasOwn(dependencies, name))).toEqual([]);
  });
});
