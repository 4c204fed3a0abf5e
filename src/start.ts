import cluster from 'node:cluster';
import { mkdirSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

/** True in a worker of a service that runs in several processes. */
export const { isWorker } = cluster;

/**
 * Runs an entry point. A failed start prints its reason on stderr, one line for each problem, and
 * ends the process with status 1. The messages name variables and files, never a secret value.
 */
export async function runOrExit(start: () => Promise<void>): Promise<void> {
  try {
    await start();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}

/**
 * Makes the process ignore SIGHUP until its listeners handle the signal. Otherwise a reload of the
 * systemd unit would end a service that still migrates the database. The listeners read the
 * certificate later anyway.
 */
export function outliveHangUps(): void {
  process.on('SIGHUP', () => undefined);
}

/** The exit status of a process that SIGTERM or SIGINT ended: 128 and the number of the signal. */
const STATUS_OF_SIGNALS = { SIGTERM: 143, SIGINT: 130 } as const;

/**
 * Ends the process at SIGTERM or SIGINT until the service handles them itself. Without a handler,
 * the kernel drops both signals in a container, because the service is process 1 there. An embedded
 * PostgreSQL stops when this process ends.
 */
export function endAtEarlySignals(): void {
  for (const [signal, status] of Object.entries(STATUS_OF_SIGNALS)) {
    process.on(signal, () => {
      const isHandled = process.listenerCount(signal) > 1;
      if (!isHandled) process.exit(status);
    });
  }
}

/**
 * Makes Node store the compiled code of the bundle in `dist/bundle/cache`, so that the next start
 * is faster. Only the user of the process may write there, because the stored code is run. A
 * process that cannot create the folder, such as one in the container image, runs without it. If
 * NODE_COMPILE_CACHE names a folder, that folder is used.
 */
export function keepCompiledCode(): void {
  const folder = fileURLToPath(new URL('bundle/cache', import.meta.url));
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch {
    return;
  }
  enableCompileCache(folder);
}
