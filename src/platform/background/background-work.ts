import type { LoggerService } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { endsWithin } from '#platform/clock/ends-within.js';

/** A provider or module that works beside the requests, such as the sender of a queue. */
export interface BackgroundProvider {
  /**
   * Ends the work, and resolves when it has ended. The call comes once, after the last request was
   * answered.
   */
  stopWork(): Promise<void>;
}

/**
 * Stops all background work of the application, and waits until it has ended. It calls `stopWork`
 * of every {@link BackgroundProvider} at the same time. The hooks of Nest would wait for one module
 * after the other, and a database that does not answer would delay each of them. A fault is logged,
 * and does not keep the other work from ending. Work that has not ended within the time limit is
 * logged, too, and is abandoned.
 *
 * @param limit the longest wait in milliseconds
 */
export async function stopBackgroundWork(
  modules: ModulesContainer,
  limit: number,
  log: Required<Pick<LoggerService, 'warn' | 'error'>>,
): Promise<void> {
  const left = new Set<string>();
  const stopped = [...providersOf(modules)].map(async (provider) => {
    const { name } = provider.constructor;
    left.add(name);
    try {
      await provider.stopWork();
    } catch (error) {
      log.error(error, `The stop of ${name} failed`);
    }
    left.delete(name);
  });
  if (await endsWithin(Promise.all(stopped), limit)) return;
  log.warn(`The stop does not wait any longer for ${[...left].join(', ')}`);
}

/** Returns the providers and modules that work in the background. */
function providersOf(modules: ModulesContainer): ReadonlySet<BackgroundProvider> {
  const wrappers = [...modules.values()].flatMap(({ providers }) => [...providers.values()]);
  const instances: unknown[] = wrappers.map(({ instance }) => instance);
  return new Set(instances.filter(worksInBackground));
}

function worksInBackground(instance: unknown): instance is BackgroundProvider {
  if (typeof instance !== 'object' || instance === null) return false;
  return 'stopWork' in instance && typeof instance.stopWork === 'function';
}
