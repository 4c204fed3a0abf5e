import {
  defineConfig,
  type TestProjectInlineConfiguration,
  type ViteUserConfig,
} from 'vitest/config';
import { useMemoryDirectory } from './test/support/memory-directory.js';
import { PROJECTS, TestFiles, type ProjectName } from './test/support/projects/projects.js';
import { ProjectSequencer } from './test/support/projects/sequencer.js';

useMemoryDirectory();

const files = new TestFiles(import.meta.dirname);

/** A project of the files that need the same. Without PostgreSQL, a run starts in a second. */
function project(name: ProjectName): TestProjectInlineConfiguration {
  const globalSetup = name === 'unit' ? [] : ['test/support/global-setup.ts'];
  return { extends: true, test: { name, include: files.of(name), globalSetup } };
}

/** Tests read the TypeScript sources directly: no build stands between a change and its test. */
export const shared = {
  oxc: { decorator: { legacy: true, emitDecoratorMetadata: true } },
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    setupFiles: ['test/support/traffic/recorder.js'],
    reporters: ['default', './test/support/run-results.ts', './test/support/closing-line.ts'],
    fsModuleCache: true,
    // `eventsource` offers its TypeScript under the condition `source`, which Node cannot load.
    server: { deps: { inline: ['@modelcontextprotocol/client', 'eventsource'] } },
    isolate: false,
    maxWorkers: 4, // for two cores: a test often waits for a program or for time
    // Requests make short-lived objects: a larger young generation saves a tenth of the CPU time.
    execArgv: ['--max-semi-space-size=64'],
    sequence: { sequencer: ProjectSequencer },
    // For what hangs, and never met on a slow machine: no test means to measure time by these.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 90_000 } },
  },
} satisfies ViteUserConfig;

export default defineConfig({
  ...shared,
  test: { ...shared.test, projects: PROJECTS.map(project) },
});
