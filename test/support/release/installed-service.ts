import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { openMigrationConnection } from '#platform/database/connection.js';
import { migrate } from '#platform/database/migrations.js';
import type { CollectedProcess } from '../collected-process.js';
import type { DebianPostgres } from '../debian-postgres.js';
import { earlierMigrations } from '../earlier-migrations.js';
import { freePort } from '../free-port.js';
import { RecordingLog } from '../recording-log.js';
import { settingsOf } from '../sandboxed-unit.js';
import type { DebianMachine } from './debian-machine.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const ORGANIZATION = '01900000-0000-7000-9000-000000000000';

/** The only user in the databases of {@link makeDataOf09}. */
export const PERSON = { id: '01900000-0000-7000-9000-000000000001', email: 'you@example.com' };

/** The name of the service's database role and of its Linux user. */
const ROLE = 'svc-server';

/**
 * Returns the SQL that inserts {@link PERSON} as an admin who has signed in at an identity
 * provider.
 */
function rowsOf(issuer: string): string {
  const subject = createHash('sha256').update(PERSON.email).digest('hex').slice(0, 32);
  return `
    INSERT INTO organizations (id, name, admin_claimed_at) VALUES ('${ORGANIZATION}', 'example.com', now());
    INSERT INTO organization_domains (org_id, domain, is_primary, verified_at) VALUES ('${ORGANIZATION}', 'example.com', true, now());
    INSERT INTO organization_providers (org_id, issuer) VALUES ('${ORGANIZATION}', '${issuer}');
    INSERT INTO users (id, org_id, email, is_org_admin) VALUES ('${PERSON.id}', '${ORGANIZATION}', '${PERSON.email}', true);
    INSERT INTO identities (issuer, subject, user_id) VALUES ('${issuer}', '${subject}', '${PERSON.id}')`;
}

/**
 * Makes databases with the schema of version 0.9.0 and the user {@link PERSON}. The role of the
 * service owns them.
 *
 * @param names the names of the databases; all get the same content
 * @param issuer the issuer of the user's identity provider
 * @param folder an existing folder, into which the migrations of 0.9.0 are copied
 */
export async function makeDataOf09(
  postgres: DebianPostgres,
  names: readonly string[],
  issuer: string,
  folder: string,
): Promise<void> {
  const admin = await openMigrationConnection(
    { connectionString: postgres.url('postgres', 'postgres') },
    new RecordingLog(),
  );
  await admin.query(`CREATE ROLE "${ROLE}" LOGIN`);
  for (const name of names) await admin.query(`CREATE DATABASE ${name} OWNER "${ROLE}"`);
  await admin.destroy();
  const migrations = await earlierMigrations('0.9', folder);
  for (const name of names) {
    const log = new RecordingLog();
    const connectionString = postgres.url(ROLE, name);
    const dataSource = await openMigrationConnection({ connectionString }, log);
    await migrate(dataSource, log, migrations);
    await dataSource.query(rowsOf(issuer));
    await dataSource.destroy();
  }
}

/**
 * The URLs of the service and its identity provider. `text` has the lines that answer the questions
 * of `svc-server-admin init`.
 */
export interface Answers {
  readonly baseUrl: string;
  readonly issuer: string;
  readonly text: string;
}

/**
 * Starts an identity provider at which the service is registered as a client. It stops when the
 * test disposes `parts`.
 */
export async function startProvider(
  parts: AsyncDisposableStack,
  databaseUrl: string,
): Promise<Answers> {
  const port = await freePort();
  const baseUrl = `http://localhost:${port}`;
  const client = { clientId: 'svc', clientSecret: 'of the client' };
  const redirectUri = `${baseUrl}/oauth/callback`;
  const idp = await startDemoIdentityProvider({ ...client, redirectUri });
  parts.defer(() => idp.close());
  const variables = {
    SVC_BASE_URL: baseUrl,
    SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
    SVC_IDP_CORP_ISSUER: idp.issuer,
    SVC_IDP_CORP_CLIENT_ID: client.clientId,
    SVC_IDP_CORP_CLIENT_SECRET: `'${client.clientSecret}'`,
    SVC_DATABASE_URL: databaseUrl,
    SVC_ALLOWED_DOMAINS: 'example.com',
    SVC_BOOTSTRAP_ADMINS: PERSON.email,
  };
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
  return { baseUrl, issuer: idp.issuer, text: lines.join('') };
}

/**
 * Puts a key of the SSH authority on the machine, as an earlier installation of the service would
 * have left it.
 *
 * @returns the public key
 */
export async function placeAuthority(machine: DebianMachine, folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const key = join(folder, 'ssh_ca_key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', key]);
  cpSync(key, join(machine.root, 'srv/ssh_ca_key'));
  await machine.run(
    'install -m 0600 -o svc-server -g svc-server /srv/ssh_ca_key /var/lib/svc-server/ssh_ca_key',
  );
  return readFileSync(`${key}.pub`, 'utf8').trim();
}

/**
 * A script that replaces the script of the unit, and variables that are added to its environment.
 */
interface Instead {
  readonly script: string;
  readonly variables: Readonly<Record<string, string>>;
}

/**
 * Starts the command of the installed systemd unit, as the unit's user and with the unit's
 * settings. Resolves when the service listens.
 */
export async function startInstalled(
  machine: DebianMachine,
  within: AsyncDisposableStack,
  instead?: Instead,
): Promise<CollectedProcess> {
  const unit = join(machine.root, 'usr/lib/systemd/system/svc-server.service');
  const settings = settingsOf(readFileSync(unit, 'utf8'));
  const one = (name: string) => settings.get(name)?.[0] ?? '';
  const [node = '', script = ''] = one('ExecStart').split(' ');
  const variables = Object.entries(instead?.variables ?? {}).map(
    ([name, value]) => `${name}=${value}`,
  );
  const environment = [...settings.get('Environment')!, ...variables].join(' ');
  const command = `${node} --env-file=${one('EnvironmentFile')} ${instead?.script ?? script}`;
  const service = machine.start(
    `cd ${one('WorkingDirectory')}; exec runuser -u ${one('User')} -- env ${environment} ${command}`,
    within,
  );
  await service.until(() => /is served on port/.test(service.output()));
  return service;
}

/**
 * Copies the script `trusting-server.js` into the machine. The script starts the service so that it
 * also trusts a software key, which production does not trust.
 *
 * @param rootPem the attestation root of the software key
 * @returns the path of the script and its argument
 */
export function placeTrustingServer(machine: DebianMachine, rootPem: string): string {
  const home = 'usr/lib/svc-server/test/support';
  mkdirSync(join(machine.root, home), { recursive: true });
  const script = 'trusting-server.js';
  cpSync(join(ROOT, 'test/support', script), join(machine.root, home, script));
  writeFileSync(join(machine.root, 'srv/root.pem'), rootPem);
  return `/${home}/${script} "$(cat /srv/root.pem)"`;
}
