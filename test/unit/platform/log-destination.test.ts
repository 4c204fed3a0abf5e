import type fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LogDestination } from '../../../src/platform/telemetry/output/log-destination.js';

/**
 * A stand-in for the log file and its disk. The test sets how many bytes the disk can still take.
 */
function fileWith(space: number, code = 'ENOSPC') {
  const state = { space, log: '', notices: [] as string[], refused: 0 };
  const take = (fd: number, data: Buffer | string): number => {
    if (fd === 2) return state.notices.push(String(data));
    const count = Math.min(state.space, data.length);
    if (count === 0) {
      state.refused += 1;
      // A caller that waits for the reader would wait for ever, and so would the test.
      if (state.refused > 20) throw Object.assign(new Error('EIO'), { code: 'EIO' });
      throw Object.assign(new Error(code), { code });
    }
    state.space -= count;
    state.log += data.slice(0, count).toString();
    return count;
  };
  const write = (fd: number, data: Buffer, done: (error: Error | null, count: number) => void) =>
    setImmediate(() => {
      try {
        done(null, take(fd, data));
      } catch (error) {
        done(error as Error, 0);
      }
    });
  const file = { write, writeSync: take } as unknown as typeof fs;
  return { state, file };
}

/** Waits until all writes in progress have ended. */
async function settled() {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe.each([true, false])('a log file without space, synchronous: %s', (isSynchronous) => {
  it('loses only the lines without room, with one notice, and begins a new line after them', async () => {
    const { state, file } = fileWith(10);
    const out = new LogDestination(1, isSynchronous, file);
    for (const line of ['first\n', 'second\n', 'third\n', 'fourth\n']) {
      out.write(line);
      await settled();
    }
    state.space = 1000;
    out.write('fifth\n');
    await settled();
    out.write('sixth\n');
    await settled();
    expect(state.log).toBe('first\nseco\nfifth\nsixth\n');
    expect(state.notices).toEqual([
      'svc-server: log lines are lost, because they cannot be written (ENOSPC)\n',
    ]);
  });

  it('writes nothing more after the reader has closed the pipe', async () => {
    const { state, file } = fileWith(6, 'EPIPE');
    const out = new LogDestination(1, isSynchronous, file);
    for (const line of ['first\n', 'second\n', 'third\n']) {
      out.write(line);
      await settled();
      state.space += line === 'second\n' ? 1000 : 0;
    }
    expect(state).toMatchObject({ log: 'first\n', notices: [] });
  });
});

describe.each([true, false])('a reader that takes nothing, synchronous: %s', (isSynchronous) => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  /** Opens a pipe whose reader takes nothing yet, and a log that is written to it. */
  function stalled() {
    const { state, file } = fileWith(0, 'EAGAIN');
    return { state, out: new LogDestination(1, isSynchronous, file) };
  }

  it('delays no caller, and gets every line in order when it goes on', async () => {
    const { state, out } = stalled();
    out.write('first\n');
    out.write('second\n');
    await settled();
    state.space = 9;
    for (const line of ['third\n', 'fourth\n']) {
      vi.advanceTimersByTime(1000);
      await settled();
      out.write(line);
    }
    state.space = 1000;
    vi.advanceTimersByTime(1000);
    await settled();
    out.write('fifth\n');
    await settled();
    expect(state).toMatchObject({ log: 'first\nsecond\nthird\nfourth\nfifth\n', notices: [] });
  });

  it('makes at most 16 MiB of lines wait, and one notice says that others are lost', async () => {
    const { state, out } = stalled();
    const line = `${'x'.repeat(1023)}\n`;
    for (let kib = 0; kib < 17 * 1024; kib += 1) out.write(line);
    await settled();
    expect(state.notices).toEqual([
      'svc-server: log lines are lost, because they cannot be written (EAGAIN)\n',
    ]);
    state.space = Number.POSITIVE_INFINITY;
    vi.advanceTimersByTime(1000);
    await expect.poll(() => state.log.length).toBeGreaterThan(15.9 * 1024 * 1024);
    await settled();
    expect(state.log.length).toBeLessThan(16.1 * 1024 * 1024);
    out.write('last\n');
    await settled();
    expect(state.log.endsWith('x\nlast\n')).toBe(true);
  });

  it('gets what waits once, if it goes on before the process ends', async () => {
    const { state, out } = stalled();
    out.write('first\n');
    await settled();
    out.write('second\n');
    state.space = 1000;
    out.flushSync();
    vi.advanceTimersByTime(1000);
    await settled();
    expect(state.log).toBe('first\nsecond\n');
  });
});

describe('the lines that wait at the end of the process', () => {
  it('are written at once, and a full disk does not delay the end', () => {
    const { state, file } = fileWith(20);
    const out = new LogDestination(1, false, file);
    for (let line = 0; line < 5; line += 1) out.write(`line ${line}\n`);
    out.flushSync(); // the first line is being written
    expect(state.log).toBe('line 1\nline 2\nline 3');
    expect(state.notices).toHaveLength(1);
  });
});

it('all destinations share one listener of the end of the process, which writes their lines', async () => {
  const { state, file } = fileWith(Infinity);
  const taken = { ...file, write: () => undefined } as unknown as typeof fs;
  const first = new LogDestination(1, false, taken);
  const before = process.listeners('exit');
  const others = Array.from({ length: 12 }, () => new LogDestination(1, false, taken));
  expect(process.listeners('exit')).toEqual(before);
  for (const out of [first, ...others]) {
    out.write('is being written\n');
    out.write('waits\n');
  }
  for (const listener of before) if (String(listener).includes('flushSync')) listener(0);
  expect(state.log).toBe('waits\n'.repeat(13));
});

it('a write has whole lines, and no more bytes than the kernel puts into a pipe at once', async () => {
  const { state, file } = fileWith(Infinity);
  const writes: string[] = [];
  const noted = {
    ...file,
    write: (fd: number, data: Buffer, done: (error: Error | null, count: number) => void) => {
      writes.push(data.toString());
      file.write(fd, data, done);
    },
  } as unknown as typeof fs;
  const out = new LogDestination(1, false, noted);
  const lines = Array.from({ length: 100 }, (_, n) => `${'é'.repeat(40 + n)}\n`);
  const error = Array.from({ length: 60 }, () => `    ${'x'.repeat(96)}\n`).join('');
  for (const line of [...lines, error]) out.write(line);
  await expect.poll(() => state.log).toBe(lines.join('') + error);
  for (const text of writes) expect(text.endsWith('\n')).toBe(true);
  expect(Math.max(...writes.map((text) => Buffer.byteLength(text)))).toBeLessThanOrEqual(4096);
  expect(writes.length).toBeLessThan(20);
});

it('a synchronous log writes a text of several blocks whole, before the program continues', async () => {
  const { state, file } = fileWith(6000, 'EAGAIN');
  const out = new LogDestination(1, true, file);
  const text = Array.from({ length: 60 }, (_, n) => `${'x'.repeat(50 + n)}\n`).join('');
  out.write(text);
  expect(state.log).toBe(text);
  out.write(text); // the reader takes only the begin of it at first
  expect(state.log.length).toBe(6000);
  state.space = Number.POSITIVE_INFINITY;
  await expect.poll(() => state.log).toBe(text + text);
});

it('a quick reader of a pipe gets megabytes that wait at the end of the process', () => {
  const { state, file } = fileWith(0, 'EAGAIN');
  const pipe = {
    ...file,
    // The reader takes what is in the pipe while the process waits after a refused write.
    writeSync: (fd: number, data: Buffer) => {
      try {
        return file.writeSync(fd, data);
      } catch (error) {
        state.refused = 0;
        state.space = 65_536;
        throw error;
      }
    },
  } as unknown as typeof fs;
  const out = new LogDestination(1, true, pipe);
  const line = `${'x'.repeat(1023)}\n`;
  for (let kib = 0; kib < 4 * 1024; kib += 1) {
    state.space = 0;
    out.write(line);
  }
  out.flushSync();
  expect(state).toMatchObject({ log: line.repeat(4 * 1024), notices: [] });
});
