import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';

/** The most changed files that the refusal of a checkout names. */
const MOST_NAMES = 10;

/**
 * Reads the commit of a checkout.
 *
 * @param {string} root the folder of the checkout
 * @returns {{ commit: string, time: number }} the hash of the commit, and its time in seconds
 * @throws Error for a folder that is no checkout, or one with changes, which are named
 */
export function cleanCommit(root) {
  const top = git(root, ['rev-parse', '--show-toplevel']).trim();
  if (realpathSync(top) !== realpathSync(root))
    throw new Error(
      `${root} is not the top of a checkout of git. Clone the project, and try again.`,
    );
  const changed = git(root, ['status', '--porcelain', '-z', '--untracked-files=all'])
    .split('\0')
    .filter(Boolean);
  if (changed.length > 0) {
    const names = changed.slice(0, MOST_NAMES).map((line) => line.slice(3));
    const more = changed.length > MOST_NAMES ? ` and ${changed.length - MOST_NAMES} more` : '';
    throw new Error(
      `The checkout has changes that no commit describes: ${names.join(', ')}${more}. Commit or remove them.`,
    );
  }
  const [commit, time] = git(root, ['log', '-1', '--format=%H %ct']).trim().split(' ');
  return { commit, time: Number(time) };
}

/**
 * Writes the files of the commit to a folder. Files that git ignores, such as a build, are not
 * among them. The ends of lines are those of the commit, even if git is configured to convert them
 * on this machine.
 */
export function exportFiles(root, folder) {
  const ends = ['-c', 'core.autocrlf=false', '-c', 'core.eol=lf'];
  git(root, [...ends, 'checkout-index', '--all', `--prefix=${folder}/`]);
}

function git(root, args) {
  return execFileSync('git', ['-C', root, ...args], { encoding: 'utf8', maxBuffer: 2 ** 26 });
}
