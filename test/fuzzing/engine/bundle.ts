import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { Coverage } from './coverage.js';
import { GLOBAL_COUNTERS, instrument } from './instrument.js';
import type { FuzzTarget } from './target.js';

/**
 * The folder for instrumented bundles. It is inside `node_modules`, so that Node finds the packages
 * that a bundle imports.
 */
const FOLDER = 'node_modules/.cache/';

/**
 * A fuzz target with an instrumented parser, and the counters. The parser and its libraries count
 * how often each block of code runs.
 */
export interface GuidedTarget {
  readonly target: FuzzTarget;
  readonly coverage: Coverage;
}

/**
 * Bundles a target with its parser and the libraries of that parser, adds the counters, and loads
 * the bundle.
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
    // Without this, the `paths` of tsconfig.json would resolve imports to type declarations.
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
