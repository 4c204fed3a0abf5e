import { describe, expect, it } from 'vitest';
import { readCorpus } from './engine/corpus.js';
import { fuzz } from './engine/fuzzer.js';
import type { FuzzTarget } from './engine/target.js';
import { BIGGEST_INPUT, TARGET_NAMES, TARGETS } from './targets.js';

/**
 * The number of mutants for each parser. `guided.test.ts`, which coverage guides, makes many more.
 */
const MUTANTS = 60;
const SEED = 30;

describe('no stored input and no mutant breaks a rule of', () => {
  it.each(TARGET_NAMES)('%s', async (name) => {
    const { target } = (await import(`../../${TARGETS[name]}`)) as { target: FuzzTarget };
    expect(target.longest).toBeLessThanOrEqual(BIGGEST_INPUT);
    // Only every tenth input of the corpus is run here, to save time. `guided.test.ts` runs all of
    // them.
    const corpus = readCorpus(name).filter((_, index) => index % 10 === 0);
    const executions = target.seeds.length + corpus.length + MUTANTS;
    const result = await fuzz(target, { executions, seed: SEED, corpus, coverage: undefined });
    expect(result.findings).toEqual([]);
    expect(result.executions).toBe(executions);
    expect(result.accepted).toBeGreaterThan(0);
  });
});
