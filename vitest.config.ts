import { defineConfig } from 'vitest/config';

/** Tests read the TypeScript sources directly: no build stands between a change and its test. */
export default defineConfig({
  oxc: { decorator: { legacy: true, emitDecoratorMetadata: true } },
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/traffic/recorder.js'],
    reporters: ['default', './test/support/closing-line.ts'],
    isolate: false,
    maxWorkers: 2,
    // For what hangs, and never met on a slow machine: no test means to measure time by these.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 30_000 } },
  },
});
