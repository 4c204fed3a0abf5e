/** Writes the pages of the bundle in Markdown. The JSON files beside them have the same content. */
import { lineOf } from './advisories.js';
import { countLicenses, GROUPS } from './packages.js';
import { STATES } from './test-results.js';

/**
 * Returns the page of the scorecard: each item with its tests, each test with its last result.
 *
 * @param {object[]} items the items of `readScorecard`
 * @param {string} about the lines about the runs
 */
export function scorecardPage(items, about) {
  const parts = items.map((item) => {
    const files = item.files.map((file) => `\n${fileLines(file)}`).join('\n');
    const result = item.state === undefined ? 'no test' : `${item.state} (${countsText(item)})`;
    return `## ${item.number}. ${item.item}\n\nStatus: **${item.status}**. ${item.held}\n\nResult: **${result}**\n${files}`;
  });
  return `# Security scorecard\n\n${about}\n\n${parts.join('\n')}`;
}

/** Returns the page of the conformance tests, by file. */
export function conformancePage(files, about) {
  const rows = files.map((file) => [code(file.path), file.state, ...countColumns(file)]);
  return (
    `# Conformance\n\nThe tests of protocols as their specifications and foreign programs see them.\n` +
    `docs/conformance.md says which modules of the OpenID Foundation's suite they stand for.\n\n` +
    `${about}\n\n${table(['File', 'Result', ...STATES], rows)}\n\n` +
    `## Each test\n\n${files.map(fileLines).join('\n')}`
  );
}

/** Returns the page of packages and licences. */
export function packagesPage(groups) {
  const parts = Object.entries(groups).map(([group, packages]) => {
    const licenses = countLicenses(packages).map(([license, count]) => [license, String(count)]);
    const rows = packages.map(({ name, version, license, isInstalled }) => [
      code(name),
      version,
      license,
      isInstalled ? 'the package' : 'the lock file',
    ]);
    return (
      `## ${group}: ${packages.length} packages\n\n${GROUPS[group]}\n\n` +
      `${table(['Licence', 'Packages'], licenses)}\n\n` +
      `${table(['Package', 'Version', 'Licence', 'Stated by'], rows)}\n`
    );
  });
  return (
    `# Packages and licences\n\nAll packages of package-lock.json that come from a registry.\n\n` +
    parts.join('\n')
  );
}

/** Returns the page of the advisories. Without a list from the registry, it says why. */
export function advisoriesPage(answer) {
  const head = `# Advisories\n\nAsked on ${answer.asked} at ${answer.registry}, by \`npm audit\`.\n\n`;
  if (!answer.reached)
    return `${head}**Not checked.** The registry gave no list: ${answer.reason}\n`;
  if (answer.advisories.length === 0) return `${head}The registry knows no advisory.\n`;
  return `${head}${answer.advisories.map((one) => `- ${lineOf(one)}\n`).join('')}`;
}

/**
 * Returns the page of the benchmarks: their kept outputs, and the dates of the pages of
 * docs/performance.
 */
export function benchmarksPage(outputs, pages) {
  const kept = outputs.map(
    ({ command, commit, isClean, ended, node, output }) =>
      `## ${code(command)}\n\nOn ${ended}, with Node ${node}, of commit ${commit ?? 'unknown'}` +
      `${isClean ? '' : ' with changes that no commit has'}.\n\n\`\`\`\n${output.trimEnd()}\n\`\`\`\n`,
  );
  const none = 'No benchmark has run on this machine since its checkout was made.\n';
  const rows = pages.map(({ path, date }) => [code(path), date]);
  return (
    `# Benchmarks\n\nThe pages of docs/performance have measured tables. Their date is that of their\n` +
    `last change; each table names its own.\n\n${table(['Page', 'Last changed'], rows)}\n\n` +
    `# Last outputs\n\n${kept.length === 0 ? none : kept.join('\n')}`
  );
}

/**
 * Returns one line for each command that runs tests: the results of its last run, or why that run
 * does not count.
 */
export function runLines(runs) {
  const lines = runs.map(({ command, whyNot, kept }) => {
    if (kept === undefined) return `- ${code(command)}: not run, because ${whyNot}.`;
    const { passed, failed, skipped } = kept.totals;
    const totals = `${passed} passed, ${failed} failed, ${skipped} skipped`;
    return `- ${code(command)}: ${totals}; ended ${kept.ended}, Node ${kept.node}, ${kept.platform}.`;
  });
  return lines.join('\n');
}

export function countsText({ counts }) {
  return STATES.toReversed()
    .map((state) => `${counts[state]} ${state}`)
    .join(', ');
}

function fileLines(file) {
  const tests = file.tests.map(({ title, state }) => `  - ${state}: ${oneLine(title)}\n`).join('');
  return `- ${code(file.path)}: **${file.state}** (${countsText(file)})\n${tests}`;
}

function countColumns({ counts }) {
  return STATES.map((state) => String(counts[state]));
}

function table(head, rows) {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.map(cell).join(' | ')} |`).join('\n');
}

function cell(text) {
  return oneLine(text).replaceAll('|', '\\|');
}

function oneLine(text) {
  return text.replaceAll(/\s+/g, ' ').trim();
}

function code(text) {
  return `\`${text}\``;
}
