import {
  chmodSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync, gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  fileInRelease,
  managerOf,
  previousPath,
  type InstalledProgram,
} from '../src/update/installed-program.js';
import { namedSource } from '../src/update/release-source.js';
import { replaceProgram, restorePrevious } from '../src/update/replacement.js';
import { compareVersions, isFarAhead } from '../src/program/version.js';
import { Terminal } from '../src/terminal/terminal.js';

/**
 * Returns a shell script that stands in for the command: it prints its version, and does nothing
 * else.
 */
const executable = (version: string) => Buffer.from(`#!/bin/sh\necho 'svc ${version}'\n`);

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-update-'));
  path = join(folder, 'svc');
  writeFileSync(path, executable('0.14.0'));
  chmodSync(path, 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

const program = (platform = 'linux', arch = 'x64'): InstalledProgram => ({
  path,
  isExecutable: true,
  platform,
  arch,
});

/**
 * Makes a folder with a release 0.15.0 of one file, and returns the arguments for
 * {@link replaceProgram}.
 */
function offer(content: Buffer, of = program()) {
  const name = fileInRelease(of, '0.15.0');
  const release = mkdtempSync(join(folder, 'release-'));
  writeFileSync(join(release, name), content);
  const files = new Map([[name, createHash('sha256').update(content).digest('hex')]]);
  return [of, { version: '0.15.0', files }, namedSource(release, new Terminal(false))] as const;
}

const names = () =>
  readdirSync(folder)
    .filter((name) => !name.startsWith('release-'))
    .toSorted();

describe('an update of one executable', () => {
  it('uncompresses the file, keeps the mode, and goes back', async () => {
    chmodSync(path, 0o700);
    const ends = await replaceProgram(...offer(gzipSync(executable('0.15.0'))));
    expect(ends).toEqual({ from: '0.14.0', to: '0.15.0' });
    expect(readFileSync(path)).toEqual(executable('0.15.0'));
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(readFileSync(`${path}.previous`)).toEqual(executable('0.14.0'));
    expect(await restorePrevious(program())).toEqual({ from: '0.15.0', to: '0.14.0' });
    expect(readFileSync(path)).toEqual(executable('0.14.0'));
    expect(names()).toEqual(['svc', 'svc.previous']);
  });

  it('renames a program of Windows, which cannot be replaced while it runs', async () => {
    const exe = join(folder, 'svc.exe');
    writeFileSync(exe, executable('0.14.0'), { mode: 0o755 });
    const windows = { ...program('win32'), path: exe };
    await replaceProgram(...offer(executable('0.15.0'), windows));
    expect(readFileSync(exe)).toEqual(executable('0.15.0'));
    expect(readFileSync(join(folder, 'svc.previous.exe'))).toEqual(executable('0.14.0'));
    await restorePrevious(windows);
    expect(readFileSync(exe)).toEqual(executable('0.14.0'));
    expect(readFileSync(join(folder, 'svc.previous.exe'))).toEqual(executable('0.15.0'));
    expect(names()).toEqual(['svc', 'svc.exe', 'svc.previous.exe']);
  });

  it.each<[string, Buffer, string]>([
    ['gzip that is cut off', gzipSync(executable('0.15.0')).subarray(0, -9), 'is damaged'],
    ['no gzip', executable('0.15.0'), 'is damaged'],
    ['another version', gzipSync(executable('0.13.0')), 'says that it is svc 0.13.0'],
    ['no program', gzipSync('MZ'), 'does not run'],
    ['more words', gzipSync("#!/bin/sh\necho 'svc 0.15.0 and more'\n"), 'does not run'],
    ['a gzip bomb', gzipSync(Buffer.alloc(2_000_000)), 'larger than any'],
  ])('leaves the file for %s', async (_, content, text) => {
    const most = { fetched: 1_000_000, uncompressed: 1_000_000 };
    await expect(replaceProgram(...offer(content), most)).rejects.toThrow(text);
    expect(readFileSync(path)).toEqual(executable('0.14.0'));
    expect(names()).toEqual(['svc']);
  });

  it('leaves the file for a download that is larger than allowed', async () => {
    const most = { fetched: 10, uncompressed: 1_000_000 };
    const content = gzipSync(executable('0.15.0'));
    expect(gunzipSync(content).length).toBeGreaterThan(10);
    await expect(replaceProgram(...offer(content), most)).rejects.toThrow('larger than any');
    expect(names()).toEqual(['svc']);
  });

  it('does not go back from a version that another process has just installed', async () => {
    writeFileSync(path, executable('0.16.0'));
    expect(await replaceProgram(...offer(gzipSync(executable('0.15.0'))))).toBeUndefined();
    expect(readFileSync(path)).toEqual(executable('0.16.0'));
  });
});

describe('the file of a system', () => {
  it.each([
    ['linux', 'arm64', 'svc-1.2.3-linux-arm64.gz', 'svc.previous'],
    ['darwin', 'x64', 'svc-1.2.3-darwin-x64.gz', 'svc.previous'],
    ['win32', 'x64', 'svc-1.2.3-win-x64.exe', 'svc.previous'],
  ])('of %s on %s is %s', (platform, arch, name, previous) => {
    expect(fileInRelease(program(platform, arch), '1.2.3')).toBe(name);
    expect(previousPath(program(platform, arch))).toBe(join(folder, previous));
  });

  it.each([
    ['C:\\Users\\ada\\scoop\\apps\\svc\\current\\svc.exe', 'scoop update svc'],
    [
      'C:\\Users\\ada\\AppData\\Local\\Microsoft\\WinGet\\Packages\\svc\\svc.exe',
      'winget upgrade svc',
    ],
    ['C:\\Users\\ada\\AppData\\Local\\Programs\\svc\\svc.exe', undefined],
    ['/opt/homebrew/Cellar/svc/0.14.0/bin/svc', 'brew upgrade svc'],
  ])('%s belongs to the package manager of %s', (installed, command) => {
    expect(managerOf({ ...program('win32'), path: installed })).toBe(command);
  });
});

describe('versions', () => {
  it.each([
    ['0.14.0', '0.14.0', 0],
    ['0.14.0', '0.14.1', -1],
    ['0.9.0', '0.14.0', -1],
    ['1.0.0', '0.99.9', 1],
    ['0.14.0-rc.2', '0.14.0', -1],
    ['0.14.0-rc.10', '0.14.0-rc.9', 1],
    ['0.14', '0.14.0', Number.NaN],
    ['0.14.0', '0.14.0-beta', Number.NaN],
  ])('%s and %s compare as %d', (one, other, order) => {
    expect(compareVersions(one, other)).toBe(order);
  });

  it('two minor versions, or a major one, are far ahead', () => {
    expect(isFarAhead('0.16.0', '0.14.9')).toBe(true);
    expect(isFarAhead('1.0.0', '0.99.0')).toBe(true);
    expect(isFarAhead('0.15.9', '0.14.0')).toBe(false);
    expect(isFarAhead('0.12.0', '0.14.0')).toBe(false);
  });
});
