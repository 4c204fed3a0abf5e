import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The severities of the registry, the worst first. */
const SEVERITIES = ['critical', 'high', 'moderate', 'low', 'info'];
/** The milliseconds after which a registry that does not answer counts as not reached. */
const DEADLINE_MS = 120_000;
/**
 * The settings of npm that differ from those of the user. npm asks once, since the next run asks
 * again. It asks about all packages, also on a machine that installs only some of them. It asks
 * although the user works offline, because `npm audit` finds no advisories offline and reports no
 * error.
 */
const SETTINGS = [
  '--fetch-retries=0',
  '--fetch-timeout=60000',
  '--loglevel=error',
  '--offline=false',
  ...['prod', 'dev', 'optional', 'peer'].map((type) => `--include=${type}`),
];

/**
 * Asks the registry by `npm audit` which packages of the lock file have advisories. npm uses the
 * registry of its configuration, or of the variable `npm_config_registry`.
 *
 * @param {string} root the folder with `package-lock.json`
 * @returns {{ reached: true, advisories: { package: string, versions: string[], severity: string,
 *   title: string, url: string, range: string, isProduction: boolean }[] } | { reached: false,
 *   reason: string }} the advisories, the worst first. `reached` is false if the registry gave no
 *   list, for any reason
 * @throws Error if npm cannot be run, or the lock file cannot be read: a fault of this machine
 */
export function readAdvisories(root) {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const { stdout, stderr, error } = npm(root, ['audit', '--json', '--package-lock-only']);
  if (error?.code === 'ETIMEDOUT')
    return { reached: false, reason: `no answer after ${DEADLINE_MS / 1000} s` };
  const answer = asJson(stdout);
  if (answer?.error?.code) throw new Error(`npm audit: ${answer.error.summary}`);
  const { vulnerabilities } = answer ?? {};
  if (typeof vulnerabilities !== 'object' || vulnerabilities === null)
    return { reached: false, reason: answer?.message ?? firstLine(stderr) };
  return { reached: true, advisories: advisoriesOf(vulnerabilities, lock) };
}

/** Returns the URL of the registry that npm is configured for. */
export function registryOf(root) {
  return npm(root, ['config', 'get', 'registry']).stdout.trim();
}

/** Returns the line that says what the registry answered about one package. */
export function lineOf({ severity, package: name, versions, title, url, isProduction }) {
  const use = isProduction ? 'production' : 'development';
  return `${severity}: ${name} ${versions.join(', ')} (${use}): ${title} ${url}`;
}

/**
 * Collects the advisories from the answer of npm. `via` of a package has objects, which are its own
 * advisories, and names of other affected packages that it needs.
 */
function advisoriesOf(vulnerabilities, lock) {
  const found = Object.values(vulnerabilities).flatMap(({ name, via, nodes }) => {
    const entries = nodes.map((path) => lock.packages[path]).filter((entry) => entry !== undefined);
    return via
      .filter((one) => typeof one === 'object')
      .map(({ severity, title, url, range }) => ({
        package: name,
        versions: [...new Set(entries.map(({ version }) => version))],
        severity,
        title,
        url,
        range,
        isProduction: entries.some(({ dev }) => dev !== true),
      }));
  });
  return found.toSorted(
    (one, other) => rankOf(one) - rankOf(other) || (keyOf(one) < keyOf(other) ? -1 : 1),
  );
}

/** Ranks an unknown severity as the worst, because the gate must not pass what it does not know. */
function rankOf({ severity }) {
  return SEVERITIES.indexOf(severity);
}

function keyOf({ package: name, url }) {
  return `${name} ${url}`;
}

/** Returns true for an advisory that the gate refuses: critical, or of an unknown severity. */
export function isCritical(advisory) {
  return rankOf(advisory) <= 0;
}

/** Runs npm with {@link SETTINGS}. */
function npm(cwd, args) {
  const options = { cwd, encoding: 'utf8', timeout: DEADLINE_MS, maxBuffer: 2 ** 28 };
  const answer = spawnSync('npm', [...args, ...SETTINGS], options);
  if (answer.error && answer.error.code !== 'ETIMEDOUT')
    throw new Error(`npm cannot be run: ${answer.error.message}`);
  return answer;
}

function asJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function firstLine(text) {
  return text.trim().split('\n', 1)[0] || 'npm printed nothing';
}
