import { execFile } from 'node:child_process';
import {
  accessSync,
  constants,
  copyFileSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { READY } from '@svc/demo/people';
import { CATALOGUE } from '../../src/platform/errors/catalogue.js';
import { startClientGround, type ClientGround } from '../support/api-client/demo-sessions.js';
import '../support/full-scale-only.js';
import { partOf, previewDocument } from '../support/preview-document.js';
import { API_GO, OPENAPI_PYTHON_CLIENT, requires } from '../support/programs.js';
import { SCALE } from '../support/scale.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/** Options that allow 64 MiB of output, because a generator may print much. */
const OPTIONS = { maxBuffer: 64 * 1024 * 1024, encoding: 'utf8' } as const;

/** The results that both client programs print after their requests to the demo. */
const WALKED = {
  members: expect.arrayContaining([READY.admin.email, READY.engineer.email]),
  found: expect.any(Number),
  events: 10,
  applications: 200,
  replaces: true,
  refused: 'unauthenticated',
  revoked: 204,
  late: 'unauthenticated',
};

/**
 * Lists the names that contain two or more error codes. A generator makes such names from a list of
 * codes.
 */
function namedAfterCodes(names: readonly string[]): string[] {
  const codes = Object.keys(CATALOGUE).map((code) => code.replaceAll('_', ''));
  return names.filter((name) => {
    const plain = name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
    return codes.filter((code) => plain.includes(code)).length > 1;
  });
}

/** The environment of the compiler: what `.ci/run` fetched, and no network. */
function goEnvironment(folder: string): Record<string, string> {
  let cache = join(API_GO, 'cache');
  try {
    accessSync(cache, constants.W_OK);
  } catch {
    cache = join(folder, 'cache'); // the user of the test cannot write into the shared cache
  }
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    GOPATH: API_GO,
    GOCACHE: cache,
    GOPROXY: 'off',
    GOTOOLCHAIN: 'local',
    GOFLAGS: '-mod=mod',
    CGO_ENABLED: '0',
  };
}

let folder: string;
let ground: ClientGround | undefined;

beforeAll(async () => {
  folder = await makeTemporaryDirectory();
  if (SCALE === 'full') ground = await startClientGround(folder);
  const document = ground?.document ?? JSON.stringify(partOf(await previewDocument(), 'Programs'));
  writeFileSync(join(folder, 'openapi.json'), document);
});

afterAll(async () => {
  await ground?.running.demo.stop();
  await removeDirectory(folder);
});

/** Returns the environment of a client program that sends requests to the demo. */
async function walkEnvironment(): Promise<Record<string, string>> {
  if (ground === undefined) throw new Error('the demo runs at full scale alone');
  return { BASE_URL: ground.running.baseUrl, SESSION: await ground.adminSession() };
}

requires('oapi-codegen').describe('the Go client that oapi-codegen generates', () => {
  it('has no type that is named after a list of error codes', async () => {
    const module = join(folder, 'go');
    mkdirSync(join(module, 'client'), { recursive: true });
    const file = join(module, 'client', 'client.go');
    const args = ['-generate', 'types,client', '-package', 'client', '-o', file];
    await run(join(API_GO, 'oapi-codegen'), [...args, join(folder, 'openapi.json')], OPTIONS);
    const code = readFileSync(file, 'utf8');
    const types = [...code.matchAll(/^type (\w+)/gm)].map(([, name]) => name ?? '');
    expect(types).toContain('Problem');
    expect(namedAfterCodes(types)).toEqual([]);
    process.stdout.write(`oapi-codegen wrote ${code.split('\n').length} lines of Go\n`);
  });

  if (SCALE !== 'full') return;

  it('compiles, and walks the demo', async () => {
    const module = join(folder, 'go');
    for (const file of ['go.mod', 'go.sum']) {
      copyFileSync(join(ROOT, '.ci/api-go', file), join(module, file));
    }
    const walk = readFileSync(join(ROOT, 'test/support/api-client/walk-go.txt'), 'utf8');
    writeFileSync(join(module, 'main.go'), walk);
    const env = goEnvironment(folder);
    await run(join(API_GO, 'go'), ['build', '-o', 'walk', '.'], { ...OPTIONS, cwd: module, env });
    const walked = await run(join(module, 'walk'), { ...OPTIONS, env: await walkEnvironment() });
    expect(JSON.parse(walked.stdout)).toEqual(WALKED);
  });
});

requires('openapi-python-client').describe('the Python client that is generated', () => {
  it('has no class that is named after a list of error codes', async () => {
    writeFileSync(join(folder, 'python.json'), '{"post_hooks": []}');
    const args = ['generate', '--path', 'openapi.json', '--output-path', 'client'];
    const more = ['--meta', 'none', '--config', 'python.json', '--fail-on-warning'];
    const { stdout } = await run(OPENAPI_PYTHON_CLIENT, [...args, ...more], {
      ...OPTIONS,
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', HOME: folder, NO_COLOR: '1' },
    });
    const classes = readdirSync(join(folder, 'client', 'models')).map((name) =>
      name.replace(/\.py$/, ''),
    );
    expect(classes, stdout).toContain('problem');
    expect(namedAfterCodes(classes)).toEqual([]);
  });

  if (SCALE !== 'full') return;

  it('compiles, and walks the demo', async () => {
    const python = join(dirname(OPENAPI_PYTHON_CLIENT), 'python');
    await run(python, ['-m', 'compileall', '-q', 'client'], { ...OPTIONS, cwd: folder });
    const walk = join(ROOT, 'test/support/api-client/walk-python.txt');
    copyFileSync(walk, join(folder, 'walk.py'));
    const env = { ...(await walkEnvironment()), PYTHONDONTWRITEBYTECODE: '1' };
    const walked = await run(python, ['walk.py'], { ...OPTIONS, cwd: folder, env });
    expect(JSON.parse(walked.stdout)).toEqual(WALKED);
  });
});
