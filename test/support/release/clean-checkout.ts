import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { basename, relative, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../../..');
/**
 * The names of files and folders that are no part of a checkout: builds, packages and data. A
 * release is made without them.
 */
const IGNORED = new Set([
  'node_modules',
  'dist',
  '.git',
  '.cache',
  'data',
  'data-demo',
  'coverage',
]);

/**
 * Runs git in a folder with a fixed author and time, so that equal commits get equal hashes.
 * Returns its output.
 */
export function git(folder: string, ...args: string[]): string {
  const settings = ['user.name=test', 'user.email=test@svc.invalid', 'init.defaultBranch=main'];
  return execFileSync(
    'git',
    [
      '-C',
      folder,
      ...settings.flatMap((one) => ['-c', one]),
      '-c',
      'commit.gpgsign=false',
      ...args,
    ],
    {
      encoding: 'utf8',
      env: {
        PATH: process.env['PATH'],
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_AUTHOR_DATE: '2026-01-02T03:04:05Z',
        GIT_COMMITTER_DATE: '2026-01-02T03:04:05Z',
      },
    },
  );
}

/**
 * Makes a Git checkout that has the current files in one commit. A test needs it, because this
 * checkout may have changes, or no Git history at all.
 *
 * @param paths the files and folders to copy; by default all
 */
export function makeCleanCheckout(folder: string, paths: readonly string[] = ['.']): void {
  mkdirSync(folder, { recursive: true });
  for (const path of paths) {
    cpSync(resolve(ROOT, path), resolve(folder, path), {
      recursive: true,
      filter: (one) => one === ROOT || !isIgnored(one),
    });
  }
  git(folder, 'init', '-q');
  git(folder, 'add', '-A');
  git(folder, 'commit', '-q', '-m', 'release');
}

function isIgnored(path: string): boolean {
  // Leaves out only these exact names, in every folder. For example, `test/unit/build` is copied.
  return relative(ROOT, path) !== '' && IGNORED.has(basename(path));
}
