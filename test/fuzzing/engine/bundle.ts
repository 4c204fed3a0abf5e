import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { Coverage } from './coverage.js';
import { GLOBAL_COUNTERS, instrument } from './instrument.js';
import type { FuzzTarget } from './target.js';

/**
 * The folder below which instrumented bundles are written, so that packages are found from them.
 */
const FOLDER = 'node_modules/.cache/';

/** A target whose parser, and the libraries behind it, count the blocks that they execute. */
export interface GuidedTarget {
  readonly target: FuzzTarget;
  readonly coverage: Coverage;
}

/**
 * Bundles a target with its parser and the libraries of that parser, adds counters, and loads it.
 *
 * @param file a module that exports the target as `target`
 */
export async function loadGuided(file: string): Promise<GuidedTarget> {
  const { code, blocks } = instrument(await bundled(file));
  const coverage = new Coverage(blocks);
  Object.defineProperty(globalThis, GLOBAL_COUNTERS, {
    value: coverage.counters,
    configurable: true,
  });
  const folder = mkdtempSync(join(FOLDER, 'svc-fuzz-'));
  try {
    const path = join(folder, 'target.mjs');
    writeFileSync(path, code);
    const { target } = (await import(pathToFileURL(path).href)) as { target: FuzzTarget };
    coverage.reset();
    return { target, coverage };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function bundled(file: string): Promise<string> {
  const bundle = await rolldown({
    input: file,
    platform: 'node',
    // Its paths are those of declarations, for the compiler alone.
    tsconfig: false,
    resolve: { conditionNames: ['source', 'import', 'node', 'default'] },
    logLevel: 'silent',
  });
  try {
    const { output } = await bundle.generate({ format: 'esm', codeSplitting: false });
    return output[0].code;
  } finally {
    await bundle.close();
  }
}
