import { describe, expect, it } from 'vitest';
import { Coverage } from './engine/coverage.js';
import { fuzz, type FuzzRun } from './engine/fuzzer.js';
import { GLOBAL_COUNTERS, instrument } from './engine/instrument.js';
import { Mutator } from './engine/mutator.js';
import { SeededRandom } from './engine/random.js';
import type { Structure } from './engine/structure.js';
import { CBOR, DER, JWS, sshFields, wordsBy } from './engine/structures.js';
import { rule, type FuzzTarget } from './engine/target.js';

const RUN: FuzzRun = { executions: 3_000, seed: 7, corpus: [], coverage: undefined };

function targetOf(run: FuzzTarget['run'], seed = 'seed'): FuzzTarget {
  return { parser: 'planted', seeds: [Buffer.from(seed)], dictionary: [], longest: 12, run };
}

/**
 * The source of a parser with a planted fault, which only one sequence of three bytes reaches.
 * Random inputs practically never find it without coverage.
 */
const NESTED = `export function parse(bytes) {
  if (bytes[0] === 0x53) {
    if (bytes[1] === 0x21) {
      if (bytes[2] === 0x99) throw new TypeError('planted');
    }
  }
  return bytes.length > 3 ? true : false;
}`;

const NESTED_TARGET = loadNested();

/** Instruments the parser {@link NESTED}, and loads it with the counters of its blocks. */
async function loadNested() {
  const { code, blocks } = instrument(NESTED);
  const coverage = new Coverage(blocks);
  Object.defineProperty(globalThis, GLOBAL_COUNTERS, {
    value: coverage.counters,
    configurable: true,
  });
  const url = `data:text/javascript,${encodeURIComponent(code)}`;
  const { parse } = (await import(/* @vite-ignore */ url)) as {
    parse: (bytes: Buffer) => boolean;
  };
  return { coverage, target: targetOf((input) => parse(input)) };
}

describe('the fuzzer', () => {
  it('finds a fault behind three comparisons by the coverage, and not without it', async () => {
    const { coverage, target } = await NESTED_TARGET;
    const run = { ...RUN, executions: 50_000 };
    const guided = await fuzz(target, { ...run, coverage });
    expect(guided.findings.map(({ error }) => error)).toEqual([expect.stringContaining('planted')]);
    expect(guided.findings[0]?.input.subarray(0, 3).toString('hex')).toBe('532199');
    expect(guided.corpus.length).toBeGreaterThanOrEqual(3);
    const blind = await fuzz(target, { ...run, executions: 5_000 });
    expect(blind.findings).toEqual([]);
  });

  it('reports a broken rule, an undocumented error and a slow input, each once', async () => {
    const broken = targetOf((input) => {
      rule(input.length % 7 !== 6, 'a length that is forbidden');
      if (input.includes('length')) throw new TypeError('not documented');
      return true;
    });
    const { findings, accepted } = await fuzz(broken, RUN);
    expect(findings.map(({ error }) => error).toSorted()).toEqual([
      expect.stringContaining('BrokenRule: a length that is forbidden'),
      expect.stringContaining('TypeError: not documented'),
    ]);
    expect(accepted).toBeGreaterThan(1_000);
    const later = targetOf(() => Promise.reject(new RangeError('not documented')));
    const [finding] = (await fuzz(later, { ...RUN, executions: 10 })).findings;
    expect(finding?.error).toContain('RangeError');
  });

  it('makes the same mutants from the same seed, and others from another', async () => {
    const inputsOf = async (seed: number) => {
      const inputs: string[] = [];
      const before = (input: Buffer) => void inputs.push(input.toString('hex'));
      await fuzz(
        targetOf(() => true),
        { ...RUN, seed, executions: 200, before },
      );
      return inputs;
    };
    expect(await inputsOf(1)).toEqual(await inputsOf(1));
    expect(await inputsOf(1)).not.toEqual(await inputsOf(2));
  });

  it('makes no mutant that is longer than the target allows', () => {
    const mutator = new Mutator(
      targetOf(() => true),
      new SeededRandom(1),
    );
    const input = Buffer.alloc(10, 0x41);
    const lengths = Array.from({ length: 500 }, () => mutator.mutant(input, input).length);
    expect(Math.max(...lengths)).toBe(12);
  });
});

describe('instrumented code', () => {
  it('gives the same results, and counts the blocks that it executes', async () => {
    const { coverage, target } = await NESTED_TARGET;
    coverage.reset();
    expect(await target.run(Buffer.from('53210700', 'hex'))).toBe(true);
    expect(coverage.collect()).toBeGreaterThan(3);
    expect(coverage.reached).toBeLessThan(coverage.blocks);
    expect(await target.run(Buffer.from('5321', 'hex'))).toBe(false);
    expect(coverage.collect()).toBe(1);
    expect(await target.run(Buffer.from('5321', 'hex'))).toBe(false);
    expect(coverage.collect()).toBe(0);
  });
});

describe('a structure', () => {
  it.each<[string, Structure, string]>([
    ['DER', DER, '3009020101a0040402abcd'],
    ['CBOR', CBOR, 'a201820203616142beefc10a'],
    ['SSH', sshFields(() => 's8'), '0000000161000000026263000000000000000701'],
    ['words', wordsBy(/\w+|[^]/g), Buffer.from('a eq "b"').toString('hex')],
    ['JWS', JWS, Buffer.from('e30.e30.AAAA').toString('hex')],
  ])('%s writes the parts that it read as the same bytes', (_, structure, hex) => {
    const parts = structure.read(Buffer.from(hex, 'hex'));
    expect(parts.length).toBeGreaterThan(0);
    expect(structure.write(parts).toString('hex')).toBe(hex);
  });

  it('computes the lengths of the parts around a part that has grown', () => {
    const [sequence] = DER.read(Buffer.from('3003020101', 'hex'));
    const inner = sequence && !Buffer.isBuffer(sequence.content) ? sequence.content[0] : undefined;
    if (inner) inner.content = Buffer.alloc(200, 1);
    const written = DER.write(sequence ? [sequence] : []);
    expect(written.subarray(0, 6).toString('hex')).toBe('3081cb0281c8');
    expect(written).toHaveLength(206);
  });
});
