import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { withLockFile } from '../src/files/lock-file.js';

const MINUTE = 60_000;

let folder: string;
let lock: string;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'setInterval', 'clearInterval'] });
  folder = mkdtempSync(join(tmpdir(), 'lock-'));
  lock = join(folder, 'ssh.lock');
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

/** Writes the lock of another process, which it renewed last before some milliseconds. */
function hold(owner: string, age = 0): void {
  writeFileSync(lock, owner);
  const at = (Date.now() - age) / 1000;
  utimesSync(lock, at, at);
}

/** Asks for the lock, and returns what became of that after some milliseconds. */
async function askFor(milliseconds: number): Promise<unknown> {
  const state: { end: unknown } = { end: 'waits' };
  void withLockFile(lock, () => Promise.resolve('owns')).then(
    (end) => (state.end = end),
    (error: unknown) => (state.end = error),
  );
  await vi.advanceTimersByTimeAsync(milliseconds);
  return state.end;
}

const living = `${process.pid} x ${hostname()}\n`;
const dead = () => `${spawnSync(process.execPath, ['-e', '']).pid} x ${hostname()}\n`;

it('is not taken from a process that lives, also if that does not renew it', async () => {
  hold(living, 10 * MINUTE);
  expect(await askFor(100)).toBe('waits');
  expect(readFileSync(lock, 'utf8')).toBe(living);
  rmSync(lock);
  await vi.advanceTimersByTimeAsync(100);
});

it('names the process that lives if the wait ends', async () => {
  hold(living);
  const end = await askFor(2 * MINUTE + 100);
  expect(end).toMatchObject({ message: expect.stringContaining(`process ${process.pid} `) });
  expect(existsSync(lock)).toBe(true);
});

it('is taken over from a process that died, also if that has just renewed it', async () => {
  hold(dead());
  expect(await askFor(100)).toBe('owns');
});

it('is taken over after a restart of the machine, which gives numbers of processes again', async () => {
  hold(living, uptime() * 1000 + MINUTE);
  expect(await askFor(100)).toBe('owns');
});

it.each([
  ['another machine', () => `${process.pid} x another-host\n`],
  ['an earlier version, which named no machine', () => `${process.pid} x\n`],
])('is taken over from %s after half a minute without a renewal', async (_, owner) => {
  hold(owner(), MINUTE);
  expect(await askFor(100)).toBe('owns');
  hold(owner(), MINUTE / 6);
  expect(await askFor(100)).toBe('waits');
  rmSync(lock);
  await vi.advanceTimersByTimeAsync(100);
});

it('is not taken over by the number of a process of another machine', async () => {
  hold(`${dead().split(' ')[0]} x another-host\n`, MINUTE / 6);
  expect(await askFor(100)).toBe('waits');
  rmSync(lock);
  await vi.advanceTimersByTimeAsync(100);
});

it('is renewed while its owner works', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const work = withLockFile(lock, () => promise);
  await vi.advanceTimersByTimeAsync(10);
  const [, , host] = readFileSync(lock, 'utf8').trim().split(' ');
  expect(host).toBe(hostname());
  hold(readFileSync(lock, 'utf8'), MINUTE);
  await vi.advanceTimersByTimeAsync(6_000);
  const other = askFor(100);
  expect(await other).toBe('waits');
  resolve();
  await work;
  await vi.advanceTimersByTimeAsync(100);
  expect(existsSync(lock)).toBe(false);
});
