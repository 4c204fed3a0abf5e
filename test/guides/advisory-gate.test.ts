import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  advisory,
  npmEnvironment,
  startAdvisoryRegistry,
  type Advisory,
} from '../support/advisory-registry.js';
import { freePort } from '../support/free-port.js';
import { runCommands } from '../support/guide.js';
import { runProgram } from '../support/svc-command.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');

const LOCK = {
  name: 'sample',
  version: '1.0.0',
  lockfileVersion: 3,
  packages: {
    '': {
      name: 'sample',
      version: '1.0.0',
      dependencies: { outer: '1.0.0' },
      devDependencies: { tool: '2.0.0' },
    },
    'node_modules/outer': { version: '1.0.0', dependencies: { inner: '^1.0.0' } },
    'node_modules/inner': { version: '1.2.0' },
    'node_modules/tool': { version: '2.0.0', dev: true },
  },
};

/** Runs the advisory gate on a folder. npm asks the given registry. */
function runGate(folder: string, registry: string, more: Readonly<Record<string, string>> = {}) {
  const gate = join(ROOT, 'scripts/evidence/advisory-gate.js');
  const env = { ...npmEnvironment(folder, registry), ...more };
  return runProgram(process.execPath, [gate, folder], { env });
}

describe('the advisory gate of CI', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    const { dependencies, devDependencies } = LOCK.packages[''];
    const manifest = { name: 'sample', version: '1.0.0', dependencies, devDependencies };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(LOCK));
  });
  afterAll(() => removeDirectory(folder));

  async function gateWith(
    known: Readonly<Record<string, readonly Advisory[]>>,
    more: Readonly<Record<string, string>> = {},
  ) {
    const registry = await startAdvisoryRegistry(known);
    try {
      return { ...(await runGate(folder, registry.url, more)), asked: registry.asked() };
    } finally {
      await registry.close();
    }
  }

  it('fails on critical advisories, of production below another package and of development', async () => {
    const end = await gateWith({
      inner: [advisory('high', 1), advisory('critical', 2)],
      tool: [advisory('critical', 3)],
    });
    expect(end.asked).toEqual({ outer: ['1.0.0'], inner: ['1.2.0'], tool: ['2.0.0'] });
    expect(end.stdout.replaceAll('Advisory gate: ', '').split('\n').slice(0, 4)).toEqual([
      `critical: inner 1.2.0 (production): ${advisory('critical', 2).title} ${advisory('critical', 2).url}`,
      `critical: tool 2.0.0 (development): ${advisory('critical', 3).title} ${advisory('critical', 3).url}`,
      `high: inner 1.2.0 (production): ${advisory('high', 1).title} ${advisory('high', 1).url}`,
      'advisories: 3, critical: 2.',
    ]);
    expect(end.status).toBe(1);
  });

  it('lists a high advisory, and passes', async () => {
    const end = await gateWith({ outer: [advisory('high', 5)], unused: [advisory('critical', 6)] });
    expect(end.stdout).toContain('high: outer 1.0.0 (production)');
    expect(end.stdout).toMatch(/advisories: 1, critical: 0\.\n$/);
    expect(end.status).toBe(0);
  });

  it('says that the source could not be reached, and does not fail', async () => {
    const port = await freePort();
    const end = await runGate(folder, `http://127.0.0.1:${port}/`);
    expect(end.stdout).toMatch(/^Advisory gate: NOT CHECKED\. .*ECONNREFUSED.*\n$/);
    expect(end.status).toBe(0);
  });

  it.each([
    ['offline, where npm itself finds no advisories', { npm_config_offline: 'true' }],
    ['without the packages of development', { npm_config_omit: 'dev' }],
    ['in production', { NODE_ENV: 'production' }],
  ])('asks the registry about all packages, though npm is set to work %s', async (_, settings) => {
    const end = await gateWith({ tool: [advisory('critical', 7)] }, settings);
    expect(end.asked).toEqual({ outer: ['1.0.0'], inner: ['1.2.0'], tool: ['2.0.0'] });
    expect([end.status, end.stdout]).toEqual([1, expect.stringContaining('critical: 1.\n')]);
  });

  it('fails in a folder without a lock file, because it could check nothing', async () => {
    const empty = join(folder, 'empty');
    mkdirSync(empty);
    const end = await runGate(empty, 'http://127.0.0.1:9/');
    expect(end.stderr).toContain('package-lock.json');
    expect(end.status).toBe(2);
  });

  it('stands in .ci/run before the tests, and its failure counts in the last line', async () => {
    const script = readFileSync(join(ROOT, '.ci/run'), 'utf8');
    const [, tail = ''] = /\n(# The advisory gate[^]*)$/.exec(script) ?? [];
    const run = async (gate: number) => {
      // Functions replace the programs that the script calls, because this test is about its last
      // lines.
      const programs =
        `npm() { case "$*" in test|*scale) echo "3 passed, 0 failed";; esac; }\n` +
        `node() { echo "Advisory gate: critical: inner"; return ${gate}; }\n`;
      return runCommands(programs + tail);
    };
    const [good, bad] = [await run(0), await run(1)];
    expect(good).toMatchObject({ status: 0 });
    expect(good.stdout.trimEnd().split('\n').at(-1)).toBe('6 passed, 0 failed');
    expect(bad).toMatchObject({ status: 1 });
    expect(bad.stdout.trimEnd().split('\n').slice(-2)).toEqual([
      'Advisory gate: critical: inner',
      '6 passed, 1 failed',
    ]);
  });
});
