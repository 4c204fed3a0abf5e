import type { Worker as ClusterWorker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { WorkerPool } from '../../../src/workers/worker-pool.js';
import type { FromPrimary, WorkerTask } from '../../../src/workers/messages.js';
import { TestClock } from '../../support/test-clock.js';

/**
 * A worker of `node:cluster` without a process. The test makes it send the messages of a worker.
 */
class FakeWorker extends EventEmitter {
  readonly signals: string[] = [];
  readonly sent: FromPrimary[] = [];
  readonly process: { readonly pid: number | undefined; kill: (signal: string) => void };

  constructor(
    readonly id: number,
    pid: number | undefined,
  ) {
    super();
    this.process = { pid, kill: (signal) => void this.signals.push(signal) };
  }

  isConnected(): boolean {
    return true;
  }

  send(message: FromPrimary): boolean {
    this.sent.push(message);
    return true;
  }

  begin(): void {
    this.emit('message', { kind: 'awaits-task' });
  }

  serve(): void {
    this.begin();
    this.emit('message', { kind: 'serves' });
  }
}

function poolOf(count: number) {
  const lines: string[] = [];
  const forks: FakeWorker[] = [];
  const firsts: boolean[] = [];
  const next: { pid: number | undefined; error?: Error } = { pid: 1 };
  const clock = new TestClock();
  const note = (line: string) => void lines.push(line);
  const pool = new WorkerPool(
    count,
    (_, isFirst) => {
      firsts.push(isFirst);
      return {} as WorkerTask;
    },
    { log: note, warn: note, error: note },
    clock,
    () => {
      if (next.error) throw next.error;
      const worker = new FakeWorker(forks.length + 1, next.pid);
      forks.push(worker);
      return worker as unknown as ClusterWorker;
    },
  );
  return { pool, lines, forks, firsts, next, clock };
}

/** Starts a pool of two workers, and waits until both serve requests. */
async function serving() {
  const made = poolOf(2);
  const started = made.pool.start();
  made.forks[0]?.serve();
  await expect.poll(() => made.forks.length).toBe(2);
  made.forks[1]?.serve();
  await started;
  return made;
}

describe('a worker that the system does not start', () => {
  it.each(['thrown', 'event'])(
    'is tried again, as one that ended: the error is %s',
    async (how) => {
      const { lines, forks, next, clock } = await serving();
      if (how === 'thrown') next.error = new Error('spawn ENOMEM');
      else next.pid = undefined;
      forks[0]?.emit('exit', null, 'SIGKILL');
      clock.advance(1000);
      if (how === 'event') {
        await expect.poll(() => forks.length).toBe(3);
        forks[2]?.emit('error', new Error('spawn EAGAIN'));
      }
      await expect
        .poll(() => lines.at(-1))
        .toMatch(
          /worker 1 was not started \(spawn E\w+\) and ended; it is started again in 500 ms/,
        );
      Object.assign(next, { pid: 1, error: undefined });
      const before = forks.length;
      clock.advance(1000);
      await expect.poll(() => forks.length).toBe(before + 1);
    },
  );

  it('ends a service of which no worker serves', async () => {
    const { pool, next } = poolOf(2);
    next.error = new Error('spawn ENOMEM');
    void pool.start();
    expect(await pool.ended).toBe(1);
  });
});

describe('a worker that ends before it serves', () => {
  it('is tried again while another worker serves, also during the start', async () => {
    const { pool, lines, forks, clock } = poolOf(2);
    const started = pool.start();
    forks[0]?.serve();
    await expect.poll(() => forks.length).toBe(2);
    forks[1]?.emit('exit', 1, null);
    expect(lines.at(-1)).toMatch(/ended with status 1; it is started again in 250 ms/);
    clock.advance(1000);
    await expect.poll(() => forks.length).toBe(3);
    forks[2]?.serve();
    await started;
    expect(lines.at(-1)).toBe('2 workers serve');
    expect(forks[0]?.signals).toEqual([]);
  });

  it('ends the service with its status if no other worker serves', async () => {
    const { pool, lines, forks } = poolOf(2);
    void pool.start();
    forks[0]?.serve();
    await expect.poll(() => forks.length).toBe(2);
    forks[0]?.emit('exit', null, 'SIGKILL');
    forks[1]?.emit('exit', 3, null);
    expect(await pool.ended).toBe(3);
    expect(lines.at(-1)).toContain('before it served; the service stops');
  });
});

describe('the metrics of a worker that ends by itself', () => {
  it('are those that it sent last, and the worker learns that they are stored', async () => {
    const { forks } = await serving();
    const [first, second] = forks;
    const counted = (value: number) => [{ name: 'requests', values: [{ value }] }];
    first?.emit('message', { kind: 'last-metrics', metrics: counted(3) });
    expect(first?.sent.at(-1)).toEqual({ kind: 'stored' });
    first?.emit('exit', 0, null);
    second?.emit('message', { kind: 'gather', id: 1 });
    await expect.poll(() => second?.sent.at(-1)).toMatchObject({ kind: 'export' });
    const question = second?.sent.at(-1);
    const id = question?.kind === 'export' ? question.id : undefined;
    second?.emit('message', { kind: 'metrics', id, metrics: counted(4) });
    await expect
      .poll(() => second?.sent.at(-1))
      .toEqual({ kind: 'gathered', id: 1, metrics: [counted(3), counted(4)] });
  });
});

describe('SIGTERM during the start', () => {
  it('starts no further worker, also if the first one serves a moment later', async () => {
    const { pool, forks } = poolOf(2);
    void pool.start();
    pool.stop('SIGTERM');
    forks[0]?.serve();
    await setImmediate();
    expect(forks.map(({ signals }) => signals)).toEqual([['SIGTERM']]);
    forks[0]?.emit('exit', 0, null);
    expect(await pool.ended).toBe(0);
  });
});

describe('SIGHUP', () => {
  it('reaches the workers that run, and none that would be ended by it', async () => {
    const { pool, forks, clock } = await serving();
    forks[0]?.emit('exit', null, 'SIGKILL');
    clock.advance(1000);
    await expect.poll(() => forks.length).toBe(3);
    pool.reload();
    expect(forks.map(({ signals }) => signals)).toEqual([[], ['SIGHUP'], []]);
    forks[2]?.begin();
    pool.reload();
    expect(forks[2]?.signals).toEqual(['SIGHUP']);
  });
});

describe('the first worker of a start', () => {
  it('is one alone, also if it ends before the others serve', async () => {
    const { pool, forks, firsts, clock } = poolOf(3);
    void pool.start();
    forks[0]?.serve();
    await expect.poll(() => forks.length).toBe(3);
    forks[1]?.serve();
    expect(firsts).toEqual([true, false]);
    forks[0]?.emit('exit', null, 'SIGKILL');
    clock.advance(1000);
    await expect.poll(() => forks.length).toBe(4);
    forks[3]?.begin();
    expect(firsts).toEqual([true, false, false]);
  });
});
