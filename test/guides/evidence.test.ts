import '../support/full-scale-only.js';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  advisory,
  npmEnvironment,
  startAdvisoryRegistry,
  type AdvisoryRegistry,
} from '../support/advisory-registry.js';
import { freePort } from '../support/free-port.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { requires } from '../support/programs.js';
import { git, makeCleanCheckout } from '../support/release/clean-checkout.js';
import { runProgram } from '../support/svc-command.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGE = '../operations/evidence.md';
/**
 * The commands without `npm ci`, because it would install 600 packages. The test links those of
 * this checkout instead.
 */
const BUNDLE = guideBlock(PAGE, 'bundle', { 'npm ci\n': '' });
const COMPARE = guideBlock(PAGE, 'compare');
const KEYS = 'test/api/keys.test.ts';
/**
 * The paths from which the bundle is made. Copying the rest of the checkout would only take time.
 */
const PARTS = ['.gitignore', 'package.json', 'package-lock.json', 'scripts', 'docs'].concat(
  ['api', 'architecture', 'conformance', 'unit'].map((name) => `test/${name}`),
);

requires('git', 'sha256sum', 'tar').describe('the bundle of evidence, in a fresh checkout', () => {
  let folder: string;
  let clone: string;
  let bundle: string;
  let said: string;
  let registry: AdvisoryRegistry;
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    clone = join(folder, 'svc-server');
    makeCleanCheckout(clone, PARTS);
    symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
    registry = await startAdvisoryRegistry({ typeorm: [advisory('high', 7)] });
    const { version } = JSON.parse(read('package.json')) as { version: string };
    bundle = join(clone, `evidence/svc-server-${version}-evidence`);
    said = await write();
  });
  afterAll(async () => {
    await registry.close();
    await removeDirectory(folder);
  });

  const read = (path: string) => readFileSync(join(clone, path), 'utf8');
  const page = (name: string) => readFileSync(join(bundle, name), 'utf8');
  const write = () =>
    runToSuccess(BUNDLE, { cwd: clone, env: npmEnvironment(folder, registry.url) });

  /** Writes the record of an `npm test` run in which the tests of one file passed. */
  function keepRun(commit: string): void {
    const titles = [...read(KEYS).matchAll(/^ {2}it\('([^']+)'/gm)].map(([, title = '']) => title);
    const tests = titles.map((title) => ({ title: `planted > ${title}`, state: 'passed' }));
    mkdirSync(join(clone, '.cache/evidence/tests'), { recursive: true });
    const totals = { passed: tests.length, failed: 0, skipped: 0 };
    const files = { [KEYS]: { errors: 0, tests } };
    const about = { ended: '2026-01-02T03:04:05Z', node: 'v24', platform: 'linux x64' };
    writeFileSync(
      join(clone, '.cache/evidence/tests/test.json'),
      JSON.stringify({ commit, isClean: true, ...about, totals, files }),
    );
  }

  it('says "not run" of every test without a run, and lists advisories, packages and SBOM', () => {
    expect(said).toMatch(/^Scorecard: 62 items, .* 0 passed, 0 skipped, 59 not run, 0 failed$/m);
    const scorecard = page('scorecard.md');
    expect(scorecard).not.toMatch(/\*\*passed|- passed:/);
    expect(scorecard).toContain('`npm test`: not run, because no run is on record.');
    expect(scorecard).toMatch(/^- `test\/api\/keys\.test\.ts`: \*\*not run\*\*/m);
    expect(page('conformance.md')).toMatch(/^\| `test\/conformance\/ssh-login\S+` \| not run \|/m);
    expect(page('advisories.md')).toContain('high: typeorm ');
    expect(page('packages.md')).toMatch(/^\| `typeorm` \| \S+ \| MIT \| the package \|$/m);
    const sbom = JSON.parse(page(`${bundle.split('/').at(-1)?.replace('-evidence', '')}.cdx.json`));
    const components = sbom.components.map(({ name }: { name: string }) => name);
    expect(components).toContain('typeorm');
    expect(components).toContain('@svc/openssh');
    expect(components).not.toContain('vitest');
    expect(page('README.md')).toContain(git(clone, 'rev-parse', 'HEAD').trim());
    expect(readdirSync(join(bundle, 'benchmarks'))).toContain('docs-performance.md');
  });

  it('has the bytes of its hashes, and the same ones again in the archive', async () => {
    await runToSuccess(COMPARE, { cwd: bundle });
    const first = digests();
    await write();
    expect(digests()).toEqual(first);
    await runToSuccess(`tar -xzf ${bundle}.tar.gz && cd */ && ${COMPARE}`, { cwd: makeFolder() });
  });

  it('shows the results of the last whole run of its commit, until a file changes', async () => {
    keepRun(git(clone, 'rev-parse', 'HEAD').trim());
    await write();
    expect(page('scorecard.md')).toContain('  - passed: planted > ');
    expect(page('README.md')).toMatch(/^- `npm test`: \d+ passed, 0 failed, 0 skipped; /m);
    // Some people set git to list no new files, because a large checkout is then faster.
    git(clone, 'config', 'status.showUntrackedFiles', 'no');
    writeFileSync(join(clone, 'changed.txt'), '');
    await write();
    expect(page('scorecard.md')).not.toMatch(/- passed:/);
    expect(page('README.md')).toContain('this checkout has changes');
  });

  it('says that the advisories were not checked if the registry is away', async () => {
    const away = npmEnvironment(folder, `http://127.0.0.1:${await freePort()}/`);
    const printed = await runToSuccess(BUNDLE, { cwd: clone, env: away });
    expect(printed).toContain('Advisories: NOT CHECKED');
    expect(page('advisories.md')).toMatch(/\*\*Not checked\.\*\* .*ECONNREFUSED/);
  });

  /**
   * Returns the hashes of the bundle's files, except those with the time of the registry's answer.
   */
  function digests(): string[] {
    const lines = page('SHA256SUMS').split('\n');
    return lines.filter((line) => !line.includes(' advisories.'));
  }

  function makeFolder(): string {
    const made = join(folder, 'unpacked');
    mkdirSync(made);
    return made;
  }
});

const CONFIG = `
  const projects = ['systems', 'api', 'unit'].map((name) => {
    return { extends: true, test: { name, include: ['test/' + name + '.test.ts'] } };
  });
  const reporters = ['${ROOT}/test/support/run-results.ts'];
  export default { test: { globals: true, fileParallelism: false, reporters, projects } };
`;
const FILES = {
  'vitest.config.mjs': CONFIG,
  '.gitignore': '/.cache/\nnode_modules\n',
  'test/systems.test.ts': "describe('a', () => { it('b', () => {}); it.skip('c', () => {}); });",
  'test/api.test.ts':
    "describe('d', () => { afterAll(() => { throw Error(); }); it('e', () => {}); });",
  'test/unit.test.ts': "it('f', () => { throw new Error('fails'); });",
};

describe('the results of a run of tests', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    mkdirSync(join(folder, 'test'));
    for (const [path, text] of Object.entries(FILES)) writeFileSync(join(folder, path), text);
    git(folder, 'init', '-q');
    git(folder, 'add', '-A');
    git(folder, 'commit', '-q', '-m', 'tests');
  });
  afterAll(() => removeDirectory(folder));

  async function run(...options: string[]): Promise<void> {
    const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
    // Vite writes into the home folder, which must stay outside of the tracked files.
    const env = { PATH: process.env['PATH'] ?? '', HOME: join(folder, '.cache') };
    await runProgram(process.execPath, [vitest, 'run', '--root', folder, ...options], { env });
  }

  function kept(): Record<string, unknown> | undefined {
    const file = join(folder, '.cache/evidence/tests/test.json');
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
  }

  it('are not kept of some files, or of some titles', async () => {
    await run('test/systems.test.ts');
    await run('-t', 'b');
    expect(kept()).toBeUndefined();
  });

  it('are kept of all files, with the commit and every failure', async () => {
    await run();
    expect(kept()).toMatchObject({
      commit: git(folder, 'rev-parse', 'HEAD').trim(),
      isClean: true,
      totals: { passed: 2, failed: 2, skipped: 1 },
      files: {
        'test/systems.test.ts': {
          errors: 0,
          tests: [
            { title: 'a > b', state: 'passed' },
            { title: 'a > c', state: 'skipped' },
          ],
        },
        'test/api.test.ts': { errors: 1, tests: [{ title: 'd > e', state: 'passed' }] },
        'test/unit.test.ts': { errors: 0, tests: [{ title: 'f', state: 'failed' }] },
      },
    });
  });

  it('are those of no commit if a file differs from it', async () => {
    writeFileSync(join(folder, 'test/unit.test.ts'), "it('f', () => {});");
    await run();
    expect(kept()).toMatchObject({ isClean: false, totals: { passed: 3, failed: 1 } });
  });
});
