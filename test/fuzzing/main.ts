// Fuzzes the parsers, each in a thread of its own:
// npm run -s fuzz -- [TARGET ...] [--executions N] [--seed N] [--keep]
// `--keep` stores the inputs that reached something new in test/fuzzing/corpus.
import { parseArgs } from 'node:util';
import { writeCorpus } from './engine/corpus.js';
import { runTarget, type GuidedResult } from './engine/run-target.js';
import { TARGET_NAMES, type TargetName } from './targets.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    executions: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    keep: { type: 'boolean', default: false },
  },
});
const unknown = positionals.filter((name) => !isTarget(name));
if (unknown.length > 0) {
  process.stderr.write(`no such target: ${unknown.join(', ')}\nuse: ${TARGET_NAMES.join(', ')}\n`);
  process.exit(2);
}
const [executions, seed] = [Number(values.executions), Number(values.seed)];
const print = (line: string) => process.stdout.write(`${line}\n`);
print(`seed ${seed}`);
print('target | executions | CPU s | accepted | blocks reached | features | corpus | findings');
print('------ | ---------: | ----: | -------: | -------------: | -------: | -----: | -------:');
for (const name of positionals.length === 0 ? TARGET_NAMES : positionals.filter(isTarget)) {
  const result = await runTarget(name, { executions, seed });
  print(rowOf(name, result));
  for (const { error, input } of result.findings) {
    print(`  ${error}\n  input: ${Buffer.from(input).toString('base64')}`);
    process.exitCode = 1;
  }
  if (values.keep && result.findings.length === 0) writeCorpus(name, result.corpus);
}

function isTarget(name: string): name is TargetName {
  return TARGET_NAMES.some((known) => known === name);
}

function rowOf(name: TargetName, result: GuidedResult): string {
  const share = `${((100 * result.accepted) / Math.max(1, result.executions)).toFixed(1)} %`;
  const columns = [
    name,
    result.executions,
    result.seconds.toFixed(0),
    share,
    `${result.reached}/${result.blocks}`,
    result.features,
    result.corpus.length,
    result.findings.length,
  ];
  return columns.join(' | ');
}
