import { accessSync, constants, statSync } from 'node:fs';
import { checkProviders } from '#domain/providers/check-providers.js';
import type { ProviderConfig } from '#platform/config/config.js';
import type { Environment } from '#platform/config/environment.js';
import { ConfigProblems, loadPart } from '#platform/config/load-config.js';
import { loadProviders } from '#platform/config/provider-settings.js';
import { TABLE } from '#platform/config/table/settings.js';
import {
  connectToInstalled,
  mayCreateTables,
  serverFacts,
} from '#platform/database/installed-database.js';
import { checkVersion } from '#platform/database/open-database.js';
import { resolveAddresses } from '#platform/outbound/resolve-addresses.js';
import { fetchFault, UpstreamHttp } from '#platform/outbound/upstream-http.js';
import { clockFinding, SKEW, SKEW_OF_PROVIDER, type Findings } from '../operator/findings.js';
import { askForRedirect } from './redirect.js';

/**
 * The longest wait, in milliseconds, for an answer of a name server or of the service's public URL.
 */
const PATIENCE = 5000;

/**
 * Checks the operator's answers to one group of questions, and records the results in `findings`.
 * After a failed check, the operator is asked the group again.
 */
export type AnswerCheck = (answers: Environment, findings: Findings) => Promise<void>;

const origin = { baseUrl: TABLE.http.baseUrl };
const trust = { extraCaCerts: TABLE.upstream.extraCaCerts };

/**
 * Checks the public URL of the service: its form, the DNS records of its host, and the certificate.
 * Problems with DNS and the certificate are only warnings, because the host may not be reachable
 * yet.
 */
export const checkAddress: AnswerCheck = async (answers, findings) => {
  const read = await findings.of(
    'public address',
    async () => new URL(loadPart(origin, answers).baseUrl),
    ({ href }) => `${href} is an origin`,
  );
  if (!read) return;
  const found = await resolveAddresses(read.hostname, AbortSignal.timeout(PATIENCE)).catch(
    () => [],
  );
  if (found.length > 0) findings.ok('DNS', `${read.hostname} has the address ${found.join(', ')}`);
  else findings.warn('DNS', `${read.hostname} has no address yet: make an A or AAAA record for it`);
  if (read.protocol === 'https:') await checkCertificate(read, answers, findings);
};

async function checkCertificate(
  { origin: address }: URL,
  answers: Environment,
  findings: Findings,
): Promise<void> {
  const http = new UpstreamHttp(loadPart(trust, answers).extraCaCerts);
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    await http.fetch(`${address}/health`, { method: 'GET', signal });
    findings.ok('certificate', `${address} has a certificate that this machine trusts`);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    findings.warn(
      'certificate',
      /CERT|ISSUER|SIGNATURE/.test(code)
        ? `${address} has a certificate that browsers refuse (${code}): get one for this host`
        : `${address} does not answer yet: check the certificate after the proxy has started`,
    );
  } finally {
    await http.close();
  }
}

/**
 * Checks each identity provider. It fetches the published documents of the provider, compares this
 * machine's clock with the provider's `Date` header, and asks if the redirect URI is registered.
 */
export const checkProvider: AnswerCheck = async (answers, findings) => {
  const read = loadProviders(answers);
  const problems = read.flatMap((one) => one.problems);
  for (const problem of problems) findings.fail('provider', problem);
  const providers = read.flatMap(({ provider }) => provider ?? []);
  if (problems.length > 0 || providers.length === 0) {
    if (problems.length === 0) findings.fail('provider', 'SVC_IDPS: names no provider');
    return;
  }
  const trusted = await findings.of(
    'authorities',
    async () => loadPart(trust, answers).extraCaCerts,
    (list) => `those of Node.js and ${list.length} of SVC_EXTRA_CA_CERTS`,
  );
  if (!trusted) return;
  const reports = await checkProviders({ providers, extraCaCerts: trusted });
  for (const { slug, problem, date } of reports) {
    if (problem === undefined) findings.ok(`provider ${slug}`, 'publishes what a sign-in needs');
    else findings.fail(`provider ${slug}`, problem);
    clockFinding(findings, `clock of ${slug}`, `the provider ${slug}`, date, SKEW_OF_PROVIDER);
  }
  const sound = providers.filter(({ slug }) =>
    reports.some((report) => report.slug === slug && report.problem === undefined),
  );
  for (const provider of sound) await checkRedirect(provider, answers, findings, trusted);
};

async function checkRedirect(
  provider: ProviderConfig,
  answers: Environment,
  findings: Findings,
  trusted: readonly string[],
): Promise<void> {
  if (provider.type !== 'oidc') return;
  const name = `redirect URI at ${provider.slug}`;
  const redirectUri = `${loadPart(origin, answers).baseUrl}/oauth/callback`;
  const http = new UpstreamHttp(trusted);
  try {
    const answer = await askForRedirect(provider, redirectUri, http);
    if (answer.kind === 'registered') findings.ok(name, `${redirectUri} is registered`);
    else if (answer.kind === 'unknown')
      findings.warn(name, `the provider does not tell: see that ${redirectUri} is registered`);
    else
      findings.fail(
        name,
        `${answer.reason}: register ${redirectUri} there, and compare the client id`,
      );
  } catch (error) {
    const reason = error instanceof ConfigProblems ? error.message : fetchFault(error);
    findings.fail(name, `the authorization endpoint cannot be reached: ${reason}`);
  } finally {
    await http.close();
  }
}

/**
 * Checks the database: the connection, the version, the right to create tables, and the clock of
 * its machine.
 */
export const checkDatabase: AnswerCheck = async (answers, findings) => {
  const config = await findings.of(
    'database URL',
    async () => loadPart(TABLE.database, answers),
    () => 'has the right form',
  );
  if (!config) return;
  if (config.url === undefined) {
    findings.fail(
      'database',
      'SVC_DATABASE_URL is missing: name a PostgreSQL of version 15 or newer',
    );
    return;
  }
  const opened = await findings.of(
    'connection',
    () => connectToInstalled(config),
    () => 'the server takes the login',
  );
  if (!opened) return;
  try {
    const { manager } = opened.dataSource;
    const facts = await findings.of(
      'version',
      async () => {
        await checkVersion(manager);
        return serverFacts(manager);
      },
      ({ version }) => `PostgreSQL ${version}`,
    );
    if (facts) clockFinding(findings, 'clock of database', 'the database', facts.time, SKEW);
    if (await mayCreateTables(manager)) findings.ok('rights', 'the role may create tables');
    else
      findings.fail('rights', 'the role may not create tables: make it the owner of the database');
  } finally {
    await opened.close();
  }
};

/**
 * Checks that the folder of the service's files exists, that the user who runs the command can
 * write there, and that no other user can enter it.
 */
export const checkFolder: AnswerCheck = async (answers, findings) => {
  await findings.of(
    'folder',
    async () => {
      const { dataDir } = loadPart(TABLE.database, answers);
      try {
        accessSync(dataDir, constants.W_OK | constants.X_OK);
      } catch (error) {
        const why = `${dataDir}: this user cannot write there (${(error as NodeJS.ErrnoException).code})`;
        throw new Error(`${why}. Make it, and run this command as the user of the service.`, {
          cause: error,
        });
      }
      if ((statSync(dataDir).mode & 0o077) !== 0)
        throw new Error(`${dataDir}: other users can enter it. Run: chmod 700 ${dataDir}`);
      return dataDir;
    },
    (folder) => `${folder} is writable, and no other user can enter it`,
  );
};

/** Checks that each first admin has an e-mail address in a domain that may enroll. */
export const checkPeople: AnswerCheck = async (answers, findings) => {
  await findings.of(
    'first admin',
    async () => {
      const { allowedDomains = new Set<string>(), bootstrapAdmins = new Set<string>() } = loadPart(
        TABLE.enrollment,
        answers,
      );
      for (const admin of bootstrapAdmins) {
        const domain = /^[^@\s]+@([^@\s]+)$/.exec(admin)?.[1];
        if (domain === undefined) throw new Error(`${admin} is not an e-mail address`);
        if (!allowedDomains.has(domain))
          throw new Error(`${admin} could not enroll: add ${domain} to SVC_ALLOWED_DOMAINS`);
      }
      return [...bootstrapAdmins].join(', ');
    },
    (admins) => `${admins} may enroll`,
  );
};
