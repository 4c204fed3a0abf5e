import type { ModulesContainer } from '@nestjs/core';
import { expect, it, vi } from 'vitest';
import {
  stopBackgroundWork,
  type BackgroundProvider,
} from '../../../src/platform/background/background-work.js';
import { RecordingLog } from '../../support/recording-log.js';

/**
 * Stops the background work of an application whose modules have one of the providers each. Returns
 * the log lines.
 */
async function stopAll(instances: readonly unknown[], limit: number): Promise<readonly string[]> {
  const modules = instances.map((instance) => ({ providers: new Map([[instance, { instance }]]) }));
  const log = new RecordingLog();
  const container = new Map(modules.entries()) as unknown as ModulesContainer;
  await stopBackgroundWork(container, limit, log);
  return log.lines;
}

it('all background work stops at the same time', async () => {
  const both = Promise.withResolvers<void>();
  let called = 0;
  const stopWork = () => {
    called += 1;
    if (called === 2) both.resolve();
    return both.promise;
  };
  expect(await stopAll([undefined, { stopWork }, 'a value', { stopWork }], 60_000)).toEqual([]);
  expect(called).toBe(2);
});

it('work that does not end is named in the log, and waited for no longer than the limit', async () => {
  const ended = vi.fn<() => void>();
  class Ending implements BackgroundProvider {
    async stopWork(): Promise<void> {
      await Promise.resolve();
      ended();
    }
  }
  class Endless implements BackgroundProvider {
    stopWork(): Promise<void> {
      return new Promise(() => undefined);
    }
  }
  class Failing implements BackgroundProvider {
    stopWork(): Promise<void> {
      return Promise.reject(new Error('no reason'));
    }
  }
  expect(await stopAll([new Endless(), new Ending(), new Failing()], 20)).toEqual([
    'error Error: no reason',
    'warn The stop does not wait any longer for Endless',
  ]);
  expect(ended).toHaveBeenCalledOnce();
});
