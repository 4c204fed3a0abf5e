/**
 * Runs the advisory gate of CI: `node scripts/evidence/advisory-gate.js [FOLDER]`. It asks the
 * registry for the advisories of the lock file in the folder, and ends with status 1 if one is
 * critical. The default folder is this checkout. If the registry gives no list, it says so and ends
 * with status 0, because a registry that is away says nothing about the packages.
 */
import { resolve } from 'node:path';
import { isCritical, lineOf, readAdvisories } from './advisories.js';

const root = resolve(process.argv[2] ?? resolve(import.meta.dirname, '../..'));
try {
  const answer = readAdvisories(root);
  if (answer.reached) report(answer);
  else say(`NOT CHECKED. The registry gave no list of advisories: ${answer.reason}`);
} catch (error) {
  process.stderr.write(`Advisory gate: ${error.message}\n`);
  process.exitCode = 2;
}

function report({ advisories }) {
  for (const advisory of advisories) say(lineOf(advisory));
  const critical = advisories.filter(isCritical).length;
  say(`advisories: ${advisories.length}, critical: ${critical}.`);
  if (critical === 0) return;
  say('A critical advisory fails the run: update the package, or override it by a mended release.');
  process.exitCode = 1;
}

function say(line) {
  process.stdout.write(`Advisory gate: ${line}\n`);
}
