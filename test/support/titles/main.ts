// Compares the tests of two commits by title, and ends with status 1 if a test was lost:
// npm run -s test:titles -- BASE HEAD [RENAMED]
// RENAMED is a file of lines `old title -> new title`. Each commit is checked out and installed in
// a temporary folder. No test runs.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { compareTitles, readRenamings, type Title } from './compare-titles.js';

const [base, head, renamed] = process.argv.slice(2);
if (base === undefined || head === undefined) {
  process.stderr.write('usage: npm run -s test:titles -- BASE HEAD [RENAMED]\n');
  process.exit(2);
}
const renamings = renamed === undefined ? [] : readRenamings(readFileSync(renamed, 'utf8'));
const [before, after] = [titlesOf(base), titlesOf(head)];
const { counts, lost, added } = compareTitles(before, after, renamings);
const print = (line: string) => process.stdout.write(`${line}\n`);
for (const { file, name } of added) print(`new:  ${file}: ${name}`);
for (const { file, name } of lost) print(`lost: ${file}: ${name}`);
print(
  `${before.length} tests before, ${after.length} after: ${counts.same} the same, ${counts.moved} in another file, ` +
    `${counts.regrouped} in another suite, ${counts.renamed} renamed, ${added.length} new, ${lost.length} lost`,
);
process.exitCode = lost.length === 0 ? 0 : 1;

/** Lists the tests of a commit, including those of `npm run test:scale` if it has some. */
function titlesOf(commit: string): Title[] {
  const folder = mkdtempSync(join(tmpdir(), 'svc-titles-'));
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  execFileSync('git', ['worktree', 'add', '--detach', '--force', folder, commit], {
    stdio: 'ignore',
  });
  try {
    run('npm', 'ci', '--no-audit', '--no-fund', '--prefer-offline');
    // Vitest loads modules of the build when it lists the tests that run behind a connection
    // pooler.
    run('npm', 'run', '-s', 'build');
    const configs = ['vitest.config.ts', 'vitest.scale.config.ts'];
    const titles = configs
      .filter((config) => existsSync(join(folder, config)))
      .flatMap((config) => {
        run(
          'npx',
          'vitest',
          'list',
          '--config',
          config,
          '--staticParse=false',
          '--json=titles.json',
        );
        const list = readFileSync(join(folder, 'titles.json'), 'utf8');
        return JSON.parse(list) as Title[];
      })
      .map(({ file, name }) => ({ file: relative(folder, file), name: withoutChance(name) }));
    const keys = new Map(titles.map((title) => [`${title.file}\n${title.name}`, title]));
    return [...keys.values()]; // a test in both lists counts once
  } finally {
    execFileSync('git', ['worktree', 'remove', '--force', folder]);
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Replaces the parts of a title that are random in each run: keys, ids, cursors and names of
 * temporary folders.
 */
function withoutChance(name: string): string {
  return name.replaceAll(/[\w+/=-]{24,}|(?<=svc-test-)\w{6}/g, '...');
}
