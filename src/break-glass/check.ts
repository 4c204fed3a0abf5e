import { feedDelay } from '#domain/audit/feed/audit-feed.repository.js';
import { LONG_DELAY } from '#domain/audit/feed/feed-watch.js';
import { SEAL_IS_LATE, sealState } from '#domain/audit/sealed-export/seal-state.repository.js';
import { checkProviders } from '#domain/providers/check-providers.js';
import { checkAuthority } from '#domain/ssh/authority/check-authority.js';
import { countExpiringTokens } from '#domain/directory/api-tokens/api-tokens.repository.js';
import { listTwins } from '#domain/admin/operator-access/twins.repository.js';
import { COUNTED_DAYS } from '#domain/oauth/notice-figures/notice-counts.repository.js';
import {
  noticeFigures,
  type NoticeFigures,
} from '#domain/oauth/notice-figures/notice-figures.repository.js';
import { WATCHED_QUEUES, WAITS_LONG } from '#domain/oauth/notice-watch/notice-queues.js';
import { checkSigningKeys } from '#domain/oauth/token-signing/check-signing-keys.js';
import type { Config, ValidConfig } from '#platform/config/config.js';
import type { Environment } from '#platform/config/environment.js';
import { ConfigProblems, loadPart } from '#platform/config/load-config.js';
import { TABLE } from '#platform/config/table/settings.js';
import { configurationOf } from '#platform/config-sources/read-configuration.js';
import { refuseForeignDatabase } from '#platform/database/composition.js';
import { durabilityWarnings, readDurability } from '#platform/database/durability.js';
import {
  assertInstalled,
  connectToInstalled,
  serverFacts,
  type InstalledDatabase,
} from '#platform/database/installed-database.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { systemClock } from '#platform/clock/clock.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { withRootSecret } from '#platform/kms/root-secret.js';
import { readCommandRelease } from '../features/install/command-release.js';
import type { GlassCommand } from './arguments.js';
import { clockFinding, Findings, SKEW, SKEW_OF_PROVIDER } from './operator/findings.js';
import { DirectoryInUse } from '#platform/database/embedded-postgres/reclaim.js';
import type { OperatorTerminal } from './operator/terminal.js';

/** The milliseconds before an API token expires in which the command warns of it: seven days. */
const URGENT = 7 * 86_400_000;

/**
 * Checks everything that a start of the service needs, and changes nothing. Returns 1 if the
 * service could not start or work, and 0 otherwise, even if there are warnings.
 */
export async function check(
  { json }: Extract<GlassCommand, { readonly name: 'check' }>,
  environment: Environment,
  terminal: OperatorTerminal,
): Promise<0 | 1> {
  const findings = new Findings();
  const config = await checkConfiguration(findings, environment);
  const database = await checkDatabase(findings, environment);
  try {
    if (config) await checkParts(findings, config, database);
    else
      findings.skip(
        ['keys in KMS', 'token-signing keys', 'SSH authority', 'providers'],
        'the configuration is wrong',
      );
  } finally {
    await database?.close();
  }
  if (json) terminal.print(JSON.stringify(findings.toJson(), undefined, 2));
  else for (const line of findings.lines()) terminal.print(line);
  return findings.healthy ? 0 : 1;
}

async function checkConfiguration(
  findings: Findings,
  environment: Environment,
): Promise<ValidConfig | undefined> {
  try {
    const { config, warnings } = await configurationOf(environment);
    for (const warning of warnings) findings.warn('configuration', warning);
    findings.ok('configuration', `${config.http.baseUrl}, relying party ${config.relyingParty.id}`);
    return config;
  } catch (error) {
    const problems = error instanceof ConfigProblems ? error.problems : [reasonOf(error)];
    for (const problem of problems) findings.fail('configuration', problem);
    return undefined;
  }
}

/**
 * Checks the database and its migrations, and compares this machine's clock with the clock of the
 * database.
 * @returns the open database, which the caller closes; undefined if it cannot be used
 */
async function checkDatabase(
  findings: Findings,
  environment: Environment,
): Promise<InstalledDatabase | undefined> {
  let opened: InstalledDatabase | undefined;
  try {
    const config = loadPart(TABLE.database, environment);
    opened = await connectToInstalled(config);
    const { dataSource } = opened;
    await refuseForeignDatabase(dataSource, 'production');
    findings.ok('database', `PostgreSQL ${(await serverFacts(dataSource.manager)).version}`);
    const later = await findings.of(
      'migrations',
      () => assertInstalled(dataSource.manager),
      () => 'every migration of this version is applied',
    );
    if (later !== undefined) findings.warn('migrations', later);
    const { url, failover } = config;
    if (url !== undefined) {
      const settings = await readDurability(dataSource.manager);
      for (const warning of durabilityWarnings(settings, failover))
        findings.warn('database', warning);
    }
    await checkClock(findings, opened);
    return opened;
  } catch (error) {
    findings.fail('database', error instanceof DirectoryInUse ? inUse(error) : reasonOf(error));
    findings.skip(['migrations', 'clock'], 'the database cannot be used');
    await opened?.close();
    return undefined;
  }
}

/**
 * Returns the text that says why the embedded database cannot be used: a running service uses it,
 * and only one process can.
 */
export function inUse({ directory, pid }: DirectoryInUse): string {
  return (
    `A running service uses the embedded database in ${directory} (PostgreSQL is process ${pid}), and one process ` +
    'alone can. Stop the service, run this command again, and start the service.'
  );
}

async function checkClock(findings: Findings, { dataSource }: InstalledDatabase): Promise<void> {
  const { time } = await serverFacts(dataSource.manager);
  clockFinding(findings, 'clock', 'the database', time, SKEW);
}

async function checkParts(
  findings: Findings,
  config: ValidConfig,
  database: InstalledDatabase | undefined,
): Promise<void> {
  const kms = await findings.of(
    'keys in KMS',
    () => KmsKeys.open(config),
    () => describeKms(config),
  );
  if (database) await checkTwins(findings, database);
  if (database) await checkNotices(findings, database);
  if (database) await checkFeed(findings, database);
  if (database) await checkSeal(findings, database);
  if (database) await checkApiTokens(findings, database);
  if (kms && database) await checkKeys(findings, config, kms, database);
  else findings.skip(['token-signing keys', 'SSH authority'], 'KMS or the database cannot be used');
  const folder = config.commandReleaseDir;
  if (folder !== undefined) {
    await findings.of(
      'files of the command',
      () => readCommandRelease(folder),
      ({ version, files }) => `svc ${version}, ${files.size} files in ${folder}`,
    );
  }
  for (const { slug, problem, date } of await checkProviders(config.upstream)) {
    if (problem === undefined) findings.ok(`provider ${slug}`, 'publishes what a sign-in needs');
    else findings.fail(`provider ${slug}`, problem);
    clockFinding(findings, `clock of ${slug}`, `the provider ${slug}`, date, SKEW_OF_PROVIDER);
  }
}

/**
 * Warns of each twin of a SCIM record. A twin is a member who signed in with the e-mail address of
 * the record, and who loses access together with the record. If the two are different people, an
 * admin must separate them.
 */
async function checkTwins(
  findings: Findings,
  { dataSource: { manager } }: InstalledDatabase,
): Promise<void> {
  const twins = await findings.of(
    'twins of records',
    () => listTwins(manager),
    (found) =>
      found.length === 0 ? 'there are none' : `${found.length} members end with a record`,
  );
  for (const { id, email, active, recordId, recordName, isRecordActive, organization } of twins ??
    []) {
    const ends = isRecordActive ? 'ends with it' : 'the record is inactive';
    findings.warn(
      'twins of records',
      `${organization}: ${email ?? id} (${id}, ${active ? 'active' : 'inactive'}) is a twin of ${recordName ?? recordId} (${recordId}): ${ends}`,
    );
  }
}

/**
 * Reports how many notices (logout tokens and security events) wait for delivery to applications,
 * and warns of notices that wait long.
 */
async function checkNotices(
  findings: Findings,
  { dataSource: { manager } }: InstalledDatabase,
): Promise<void> {
  const figures = await findings.of(
    'notices',
    () => noticeFigures(manager, WATCHED_QUEUES, 'all'),
    (found) =>
      found
        .filter((one) => !(one.isOfReceivers && one.isSelfRegistered))
        .map(describeFigures)
        .join('; '),
  );
  for (const one of figures ?? []) {
    if (one.isSelfRegistered || one.age < WAITS_LONG) continue;
    const minutes = Math.round(one.age / 60_000);
    const late = one.isOfReceivers
      ? `event receivers have not taken an event for ${minutes} minutes`
      : `applications have not heard of an end for ${minutes} minutes`;
    findings.warn('notices', late);
  }
}

/**
 * Reports for how long the oldest event of the audit log waits to appear in the feed that other
 * programs read, and warns of a long delay.
 */
async function checkFeed(
  findings: Findings,
  { dataSource: { manager } }: InstalledDatabase,
): Promise<void> {
  const delay = await findings.of(
    'audit feed',
    () => feedDelay(manager),
    (found) => `the oldest event waits ${Math.round(found / 1000)} seconds`,
  );
  if (delay !== undefined && delay >= LONG_DELAY) {
    findings.warn('audit feed', 'waits for an open transaction (docs/guides/monitoring.md)');
  }
}

/**
 * Reports when the service last sealed the audit log, and warns if that is long ago. To seal is to
 * add the new events to a tree of hashes and to sign it.
 */
async function checkSeal(
  findings: Findings,
  { dataSource: { manager } }: InstalledDatabase,
): Promise<void> {
  const state = await findings.of(
    'audit seal',
    () => sealState(manager),
    ({ age, unpublished }) =>
      age === undefined
        ? 'has not begun yet'
        : `the last round was ${Math.round(age / 60_000)} minutes ago, ${unpublished} checkpoints wait`,
  );
  if (state?.age !== undefined && state.age >= SEAL_IS_LATE) {
    findings.warn('audit seal', 'no replica seals the audit log (docs/operations/audit-seal.md)');
  }
}

/** Reports the API tokens that expire within 30 days, and warns in the last 7. */
async function checkApiTokens(
  findings: Findings,
  { dataSource: { manager } }: InstalledDatabase,
): Promise<void> {
  const soon = await findings.of(
    'API tokens',
    () => countExpiringTokens(manager, 30),
    ({ count }) => `${count} expire within 30 days without a successor`,
  );
  if (!soon?.first || soon.first.getTime() - systemClock.milliseconds() > URGENT) return;
  const text = `the first one expires at ${soon.first.toISOString()}: an admin has to rotate it`;
  findings.warn('API tokens', text);
}

function describeFigures(of: NoticeFigures): string {
  const { kind, isSelfRegistered, isOfReceivers, ...figures } = of;
  const { waiting, oldest, sent, failed } = figures;
  const since = oldest === null ? '' : ` since ${oldest.toISOString()}`;
  const clients = isSelfRegistered ? 'clients that registered themselves' : 'applications';
  const to = isOfReceivers ? 'event receivers' : clients;
  return `${kind} to ${to}: ${waiting} wait${since}, ${sent} sent and ${failed} failed in ${COUNTED_DAYS} days`;
}

function describeKms({ kms }: ValidConfig): string {
  return kms.keys.length === 0 ? 'none is configured' : `${kms.keys.length} keys answer and fit`;
}

async function checkKeys(
  findings: Findings,
  validConfig: ValidConfig,
  kms: KmsKeys,
  { dataSource: { manager } }: InstalledDatabase,
): Promise<void> {
  const config: Config | undefined = await findings.of(
    'root secret',
    () => withRootSecret(validConfig, kms),
    () => 'is available',
  );
  if (config) await findings.of('token-signing keys', () => checkSigningKeys(config, manager));
  else findings.skip(['token-signing keys'], 'the root secret is missing');
  await findings.of('SSH authority', () => {
    const signers = validConfig.ssh.caKmsKeyIds.map((id) => kms.signer(id, 'Ed25519', 'ES256'));
    return checkAuthority(validConfig, manager, signers);
  });
}
