import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SVC_BUNDLE, SvcHome, runProgram } from '../support/svc-command.js';

describe('the bundle of the command', () => {
  let home: SvcHome;
  beforeAll(async () => (home = await SvcHome.create()));
  afterAll(() => home.remove());
  /**
   * Copies the bundled script, because the command in the home folder may be an executable instead.
   */
  const script = (name = 'svc') => {
    const file = join(home.path, name);
    copyFileSync(SVC_BUNDLE, file);
    return file;
  };

  it('is one file that imports nothing, and loads modules of Node alone', () => {
    const text = readFileSync(SVC_BUNDLE, 'utf8');
    expect(text.startsWith('#!/usr/bin/env node\n')).toBe(true);
    expect(text).not.toMatch(/^\s*(?:import|export)\b/m);
    const loaded = [...text.matchAll(/(?:svcBuiltin|require|import)\(["'`]([^"'`]+)/g)];
    expect(loaded.map(([, name]) => name)).toContain('node:fs');
    expect(loaded.filter(([, name]) => !name?.startsWith('node:'))).toEqual([]);
  });

  it('loads at the start nothing that Node has not loaded before', async () => {
    const probe = `const loaded = () => process.moduleLoadList.filter((name) => name.startsWith('NativeModule'));
      const before = new Set(loaded());
      process.on('exit', () => require('fs').writeSync(1, JSON.stringify(loaded().filter((name) => !before.has(name)))));
      process.argv.push('status');
      require(${JSON.stringify(script())});`;
    const end = await runProgram(process.execPath, ['-e', probe], { env: home.env });
    const extra = JSON.parse(end.stdout) as string[];
    const heavy = /crypto|http|net$|tls|child_process|undici|readline|inspector|worker/;
    expect(extra.filter((name) => heavy.test(name))).toEqual([]);
  });

  it('runs under the name svc and under the name svc.mjs', async () => {
    for (const file of [script(), script('svc.mjs')]) {
      const end = await runProgram(process.execPath, [file, '--version'], { env: home.env });
      expect(end).toMatchObject({ status: 0, stderr: '' });
      expect(end.stdout).toMatch(/^svc \d+\.\d+\.\d+\n$/);
    }
  });
});

describe('svc without a login', () => {
  let home: SvcHome;
  beforeAll(async () => (home = await SvcHome.create()));
  afterAll(() => home.remove());

  it.each([
    [[], 2, 'Usage: svc COMMAND'],
    [['nonsense'], 2, 'There is no command nonsense.'],
    [['status', 'superfluous'], 2, 'Usage: svc status'],
    [['status', '--loud'], 2, 'Unknown option: --loud'],
    [['--server'], 2, '--server needs a URL.'],
    [['use'], 2, 'Usage: svc use SERVER'],
    [['use', 'http://login.example.com'], 2, 'must begin with https://'],
    [['use', 'https://login.example.com/path'], 2, 'has a path'],
    [['status'], 3, 'Run: svc login --server'],
    [['--server', 'https://login.example.com', 'status'], 3, 'Run: svc login'],
  ])('%j ends with status %i and says what to do', async (args, status, text) => {
    const end = await home.run(args);
    expect([end.status, end.stdout]).toEqual([status, '']);
    expect(end.stderr).toContain(text);
  });

  it('prints an error as one JSON document with --json', async () => {
    const end = await home.run(['status', '--json']);
    expect(end.status).toBe(3);
    expect(JSON.parse(end.stdout)).toMatchObject({
      error: { exit_status: 3, what_to_do: expect.stringContaining('svc login') },
    });
  });
});
