/**
 * Runs `npm run evidence`: writes the evidence of a version for an auditor, as a folder and as an
 * archive of it. It runs no test. It needs `npm ci`, and git for the commit.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ARCHITECTURES, nodePackage } from '../release/node-binary.js';
import { sbomOf } from '../release/sbom.js';
import { readAdvisories, registryOf } from './advisories.js';
import { writeBundle } from './bundle.js';
import { keptNames, readCheckout, readResult } from './kept-results.js';
import { listPackages, productionLock } from './packages.js';
import {
  advisoriesPage,
  benchmarksPage,
  conformancePage,
  packagesPage,
  runLines,
  scorecardPage,
} from './pages.js';
import { readScorecard } from './scorecard.js';
import { STATES, TestResults } from './test-results.js';

const ROOT = resolve(import.meta.dirname, '../..');
const USAGE = `Usage: npm run evidence [-- OUT]

  OUT   The folder for the bundle, which is "evidence" by default.
`;
const PERFORMANCE = ['docs/performance.md', 'docs/performance/'];

try {
  await writeEvidence(readArguments());
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

function readArguments() {
  const { positionals } = parseArgs({ allowPositionals: true });
  if (positionals.length > 1) throw new Error(USAGE);
  return resolve(positionals[0] ?? join(ROOT, 'evidence'));
}

async function writeEvidence(out) {
  if (!existsSync(join(ROOT, 'node_modules')))
    throw new Error('node_modules does not exist. Run npm ci, and try again.');
  const checkout = readCheckout(ROOT);
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const results = new TestResults(ROOT, checkout);
  const name = `svc-server-${lock.version}-evidence`;
  const parts = {
    scorecard: scorecardPart(results),
    conformance: conformancePart(results),
    packages: packagesPart(lock),
    advisories: advisoriesPart(),
    benchmarks: benchmarksPart(),
    sbom: sbomPart(lock, checkout),
  };
  const files = Object.assign({}, ...Object.values(parts).map((part) => part.files));
  files['README.md'] = indexPage({ version: lock.version, checkout, results, parts });
  for (const { command, kept } of results.runs)
    if (kept) files[`test-results/${command.replaceAll(/\W+/g, '-')}.json`] = json(kept);
  const archive = await writeBundle({ out, name, files, time: checkout.time });
  for (const { said } of Object.values(parts)) say(said);
  say(`Written: ${join(out, name)}/ and ${archive}`);
}

function scorecardPart(results) {
  const items = readScorecard(ROOT, results);
  const held = items.filter(({ state }) => state !== undefined);
  const by = STATES.map((one) => `${held.filter(({ state }) => state === one).length} ${one}`);
  const met = items.filter(({ status }) => status === 'met').length;
  return {
    said: `Scorecard: ${items.length} items, ${met} met; ${held.length} with tests: ${by.toReversed().join(', ')}`,
    files: {
      'scorecard.md': scorecardPage(items, runLines(results.runs)),
      'scorecard.json': json(items),
    },
  };
}

function conformancePart(results) {
  const files = results.filesOf('conformance').map((path) => results.of(path));
  const by = STATES.map((one) => `${files.filter(({ state }) => state === one).length} ${one}`);
  return {
    said: `Conformance: ${files.length} files: ${by.toReversed().join(', ')}`,
    files: {
      'conformance.md': conformancePage(files, runLines(results.runs)),
      'conformance.json': json(files),
    },
  };
}

function packagesPart(lock) {
  const groups = listPackages(ROOT, lock);
  const counts = Object.entries(groups).map(([group, found]) => `${found.length} ${group}`);
  return {
    said: `Packages: ${counts.join(', ')}`,
    files: { 'packages.md': packagesPage(groups), 'packages.json': json(groups) },
  };
}

function advisoriesPart() {
  const registry = registryOf(ROOT);
  const answer = readAdvisories(ROOT);
  const asked = new Date().toISOString();
  return {
    said: answer.reached
      ? `Advisories: ${answer.advisories.length} of ${registry}`
      : `Advisories: NOT CHECKED, because ${registry} gave no list: ${answer.reason}`,
    files: {
      'advisories.md': advisoriesPage({ ...answer, registry, asked }),
      'advisories.json': json({ asked, registry, ...answer }),
    },
  };
}

function benchmarksPart() {
  const outputs = keptNames(ROOT, 'bench').flatMap((name) => readResult(ROOT, name) ?? []);
  const paths = git('ls-files', '--', ...PERFORMANCE);
  const pages = paths.map((path) => ({
    path,
    date: git('log', '-1', '--format=%cs', '--', path)[0],
  }));
  const texts = paths.map((path) => [
    `benchmarks/${path.replaceAll('/', '-')}`,
    readFileSync(join(ROOT, path), 'utf8'),
  ]);
  return {
    said: `Benchmarks: ${outputs.length} kept outputs, ${pages.length} pages`,
    files: { 'benchmarks.md': benchmarksPage(outputs, pages), ...Object.fromEntries(texts) },
  };
}

/**
 * Lists the components of production (SBOM: software bill of materials), as the release does. The
 * executables of the command are left out.
 */
function sbomPart(lock, { commit = 'unknown', time }) {
  const nodes = Object.keys(ARCHITECTURES).map((one) => nodePackage(lock, one));
  const sbom = sbomOf({
    tree: ROOT,
    lock: productionLock(lock),
    nodes,
    runtimes: [],
    commit,
    time,
  });
  return {
    said: `SBOM: ${sbom.components.length} components of production`,
    files: { [`svc-server-${lock.version}.cdx.json`]: json(sbom) },
  };
}

function indexPage({ version, checkout, results, parts }) {
  const commit = checkout.commit ?? 'unknown, because git does not know this folder';
  const changed = checkout.isClean
    ? ''
    : '\n**The checkout has changes that this commit does not have. No test result counts.**\n';
  const summary = Object.values(parts).map(({ said }) => `- ${said}\n`);
  return (
    `# Evidence of svc-server ${version}\n\nCommit: ${commit}\n${changed}\n` +
    `## The last whole test runs\n\n${runLines(results.runs)}\n\n` +
    `A result counts only for its own commit. A test without one is "not run".\n\n` +
    `## What is here\n\n${summary.join('')}\n` +
    'docs/operations/evidence.md says what each file is. `sha256sum -c SHA256SUMS` compares them.\n'
  );
}

/** Returns the lines that git prints; none if git does not know the folder. */
function git(...args) {
  try {
    const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] };
    return execFileSync('git', ['-C', ROOT, ...args], options)
      .trim()
      .split('\n')
      .filter(Boolean);
  } catch {
    return [];
  }
}

function json(document) {
  return `${JSON.stringify(document, null, 2)}\n`;
}

function say(line) {
  process.stdout.write(`${line}\n`);
}
