/**
 * Runs a benchmark: `npm run bench -- NAME [OPTION]` runs bench/NAME.bench.js. It prints the
 * figures of the service, and those of the programs with which it is compared, if there are any.
 * The last output of each benchmark is kept for `npm run evidence`.
 */
import { readdirSync } from 'node:fs';
import { keepOutput } from './keep-output.js';

const names = readdirSync(import.meta.dirname)
  .map((file) => /^(\w+)\.bench\.js$/.exec(file)?.[1])
  .filter((name) => name !== undefined);
const [name, ...options] = process.argv.slice(2);
if (name === undefined || !names.includes(name)) {
  process.stderr.write(`usage: npm run bench -- ${names.join('|')}\n`);
  process.exit(2);
}
const { run } = await import(`./${name}.bench.js`);
await keepOutput(name, options, () => run(...options));
