// Repeats test files while other processes keep the machine busy, and ends with status 1 if one run
// failed:
// npm run -s test:stress -- FILE [FILE ...] [--runs=20] [--load=20]
import { spawn, spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { positionals: files, values } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '20' },
    load: { type: 'string', default: '20' },
  },
});
if (files.length === 0) {
  process.stderr.write(
    'usage: npm run -s test:stress -- FILE [FILE ...] [--runs=20] [--load=20]\n',
  );
  process.exit(2);
}
/** A program that keeps one core of the machine busy, and ends with this process. */
const HOG = `
  process.once('disconnect', () => process.exit());
  setImmediate(function turn() {
    for (const end = Date.now() + 100; Date.now() < end; );
    setImmediate(turn);
  });`;

const hogs = Array.from({ length: Number(values.load) }, () =>
  spawn(process.execPath, ['-e', HOG], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }),
);
let failed = 0;
try {
  for (let run = 1; run <= Number(values.runs); run += 1) {
    const begun = performance.now();
    const { status, stdout } = spawnSync('npx', ['vitest', 'run', ...files], { encoding: 'utf8' });
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    process.stdout.write(`run ${run}: ${status === 0 ? 'passed' : 'FAILED'} in ${seconds} s\n`);
    if (status === 0) continue;
    failed += 1;
    process.stdout.write(stdout);
  }
} finally {
  for (const hog of hogs) hog.kill('SIGKILL');
}
process.stdout.write(`${failed} of ${values.runs} runs failed at load ${values.load}\n`);
process.exitCode = failed === 0 ? 0 : 1;
