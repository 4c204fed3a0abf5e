import { describe, expect, it } from 'vitest';
import { readCorpus } from './engine/corpus.js';
import { fuzz } from './engine/fuzzer.js';
import type { FuzzTarget } from './engine/target.js';
import { BIGGEST_INPUT, TARGET_NAMES, TARGETS } from './targets.js';

/** The mutants of each parser. The run with guidance, `guided.test.ts`, makes many more. */
const MUTANTS = 60;
const SEED = 30;

describe('no stored input and no mutant breaks a rule of', () => {
  it.each(TARGET_NAMES)('%s', async (name) => {
    const { target } = (await import(`../../${TARGETS[name]}`)) as { target: FuzzTarget };
    expect(target.longest).toBeLessThanOrEqual(BIGGEST_INPUT);
    // Each tenth input of the corpus costs a tenth of the time; all are run with guidance.
    const corpus = readCorpus(name).filter((_, index) => index % 10 === 0);
    const executions = target.seeds.length + corpus.length + MUTANTS;
    const result = await fuzz(target, { executions, seed: SEED, corpus, coverage: undefined });
    expect(result.findings).toEqual([]);
    expect(result.executions).toBe(executions);
    expect(result.accepted).toBeGreaterThan(0);
  });
});
