import { resolve } from 'node:path';
import { keepResult, readCheckout } from '../scripts/evidence/kept-results.js';

const ROOT = resolve(import.meta.dirname, '..');

/**
 * Runs a benchmark, and keeps what it printed for `npm run evidence`. What a benchmark printed
 * before it failed is not kept.
 *
 * @param {string} name the name of the benchmark
 * @param {string[]} options its options
 * @param {() => Promise<void>} run
 */
export async function keepOutput(name, options, run) {
  const before = readCheckout(ROOT);
  const printed = [];
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = (chunk, ...rest) => {
    printed.push(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString());
    return write(chunk, ...rest);
  };
  try {
    await run();
  } finally {
    delete process.stdout.write; // stdout has the method of its class again
  }
  const after = readCheckout(ROOT);
  keepResult(ROOT, `bench/${name}`, {
    command: ['npm run bench --', name, ...options].join(' '),
    commit: before.commit,
    isClean: before.isClean && after.isClean && before.commit === after.commit,
    ended: new Date().toISOString(),
    node: process.version,
    output: printed.join(''),
  });
}
