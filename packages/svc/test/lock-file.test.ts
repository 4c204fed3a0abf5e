import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { withLockFile } from '../src/files/lock-file.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

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

/** Writes the lock of another process, whose last renewal was `age` milliseconds ago. */
function hold(owner: string, age = 0): void {
  writeFileSync(lock, owner);
  const at = (Date.now() - age) / 1000;
  utimesSync(lock, at, at);
}

/**
 * Asks for the lock, and returns the state after some milliseconds: `owns`, `waits` or the error.
 */
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

/** Renews the lock of another process every 5 seconds, until the function that it returns. */
function renewing(owner: string): () => void {
  hold(owner);
  const renewal = setInterval(() => hold(owner), 5 * SECOND);
  return () => clearInterval(renewal);
}

it('is not taken from a process that lives and renews it', async () => {
  const stop = renewing(living);
  expect(await askFor(MINUTE)).toBe('waits');
  expect(readFileSync(lock, 'utf8')).toBe(living);
  stop();
  rmSync(lock);
  await vi.advanceTimersByTimeAsync(100);
});

it('names the process that lives if the wait ends', async () => {
  const stop = renewing(living);
  const end = await askFor(2 * MINUTE + 100);
  stop();
  expect(end).toMatchObject({ message: expect.stringContaining(`process ${process.pid} `) });
  expect(existsSync(lock)).toBe(true);
});

it('is taken over from a process that died, also if that has just renewed it', async () => {
  hold(dead());
  expect(await askFor(100)).toBe('owns');
});

it.each([
  ['a process whose number another one has now', () => living],
  ['another machine', () => `${process.pid} x another-host\n`],
  ['an earlier version, which named no machine', () => `${process.pid} x\n`],
])('is taken over from %s after a wait of half a minute without a renewal', async (_, owner) => {
  hold(owner(), 10 * MINUTE);
  expect(await askFor(29 * SECOND)).toBe('waits');
  expect(readFileSync(lock, 'utf8')).toBe(owner());
  await vi.advanceTimersByTimeAsync(2 * SECOND);
  expect(existsSync(lock)).toBe(false);
});

it('is not taken over because the clock of the machine was set', async () => {
  hold(living);
  const end = askFor(100);
  vi.setSystemTime(Date.now() + 60 * MINUTE);
  expect(await end).toBe('waits');
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
  const own = readFileSync(lock, 'utf8');
  expect(own.trim().split(' ')[2]).toBe(hostname());
  hold(own, MINUTE);
  const before = statSync(lock).mtimeMs;
  await vi.advanceTimersByTimeAsync(6 * SECOND);
  expect(statSync(lock).mtimeMs).toBeGreaterThan(before);
  expect(await askFor(MINUTE)).toBe('waits');
  expect(readFileSync(lock, 'utf8')).toBe(own);
  resolve();
  await work;
  await vi.advanceTimersByTimeAsync(100);
  expect(existsSync(lock)).toBe(false);
});

it('is not renewed by an owner that lost it', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const work = withLockFile(lock, () => promise);
  await vi.advanceTimersByTimeAsync(10);
  hold(living, MINUTE);
  const before = statSync(lock).mtimeMs;
  await vi.advanceTimersByTimeAsync(6 * SECOND);
  expect(statSync(lock).mtimeMs).toBe(before);
  resolve();
  await work;
  expect(readFileSync(lock, 'utf8')).toBe(living);
});
