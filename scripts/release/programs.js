import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Runs a program with its output on standard error.
 * @throws Error if the program cannot be run, or fails
 */
export function run(program, args, cwd) {
  const { status, error } = spawnSync(program, args, { cwd, stdio: ['ignore', 2, 2] });
  if (error) throw new Error(`${program} cannot be run: ${error.message}`);
  if (status !== 0)
    throw new Error(`${program} ${args.slice(0, 2).join(' ')} ended with status ${status}`);
}

/**
 * Signs a file by `ssh-keygen`, in its namespace for files, so that the signature is valid for no
 * login and no commit.
 *
 * @param {string} file
 * @param {string} key the path of the private key, or of the public key if an SSH agent holds the
 *   private one
 * @returns {string} the path of the signature
 */
export function sign(file, key) {
  // ssh-keygen would ask whether to replace it
  rmSync(`${file}.sig`, { force: true });
  run('ssh-keygen', ['-q', '-Y', 'sign', '-f', key, '-n', 'file', file], dirname(file));
  return `${file}.sig`;
}
