import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { withoutEmpty } from '../../src/platform/config/environment.js';
import { configurationOf } from '../../src/platform/config-sources/read-configuration.js';
import { VARIABLES } from '../../src/platform/config/table/settings.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { run } from '../support/entry-point.js';
import { freePort } from '../support/free-port.js';
import { atScale } from '../support/scale.js';
import { startServerProcess } from '../support/server-process.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import { providerEnvironment, TEST_CLIENT } from '../support/provider-environment.js';

/** A text in every wrong value. No message may contain it, because values may be secrets. */
const PLANTED = 'planted-value';

const AAGUID = 'fa2b99dc-9e39-4257-8f92-4a30d23c4118';

const NOT_MEANT =
  'SVC_CERTIFICATION_TEST_TOKEN: certification test mode starts on loopback alone, or where SVC_CERTIFICATION_HOST ' +
  'names the host of SVC_BASE_URL';

/** The path of a file with the private key of a GitHub App. */
const APP_KEY = join(mkdtempSync(join(tmpdir(), 'svc-test-')), 'app.pem');

/**
 * Returns a case of {@link FATAL}: a GitHub App with one wrong variable, and the line that must
 * result.
 */
function ofGitHubApp(
  wrong: Record<string, string>,
  says: string,
): [Record<string, string>, string][] {
  const app = {
    SVC_GITHUB_APP_ID: '1',
    SVC_GITHUB_APP_KEY: APP_KEY,
    SVC_GITHUB_APP_NAME: 'svc',
    SVC_GITHUB_APP_CLIENT_ID: 'Iv1.1',
    SVC_GITHUB_APP_CLIENT_SECRET: 'secret',
    SVC_GITHUB_WEBHOOK_SECRET: 'webhook-secret',
  };
  return [[{ ...app, ...wrong }, `${Object.keys(wrong)[0]}: ${says}`]];
}

/**
 * Returns a case of {@link FATAL}: a SAML provider with one wrong variable, and the line that must
 * result.
 */
function ofSamlProvider(
  wrong: Record<string, string>,
  says: string,
): [Record<string, string>, string][] {
  const provider = { TYPE: 'saml', METADATA_URL: 'http://127.0.0.1:9/metadata', ...wrong };
  const named = Object.entries(provider).map(([name, value]) => [`SVC_IDP_CORP_${name}`, value]);
  const environment = { SVC_IDPS: 'demo,corp', ...Object.fromEntries(named) };
  return [[environment, `SVC_IDP_CORP_${Object.keys(wrong)[0]}: ${says}`]];
}

/**
 * For each case: variables that change a valid configuration, and the only line that the start must
 * print.
 */
const FATAL: readonly (readonly [environment: Record<string, string>, line: string])[] = [
  [{ SVC_JWT_SECRET: '' }, 'SVC_JWT_SECRET: is required'],
  [{ SVC_JWT_SECRET: `${PLANTED}-short` }, 'SVC_JWT_SECRET: must have at least 32 characters'],
  [{ SVC_JWT_SECRET: 'a'.repeat(64) }, 'SVC_JWT_SECRET: must not be one repeated character'],
  [
    { SVC_JWT_SECRET_PREVIOUS: PLANTED },
    'SVC_JWT_SECRET_PREVIOUS: must have at least 32 characters',
  ],
  [
    { SVC_JWT_HMAC_KMS_KEY_ID: PLANTED },
    'SVC_JWT_SECRET: must not be set beside SVC_JWT_HMAC_KMS_KEY_ID; keep the one that is the secret',
  ],
  [
    { SVC_JWT_SECRET: '', SVC_JWT_HMAC_KMS_KEY_ID: `${PLANTED} ${PLANTED}` },
    'SVC_JWT_HMAC_KMS_KEY_ID: must be the id or ARN of a key in AWS KMS',
  ],
  [
    { SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS: `${PLANTED}?` },
    'SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS: must be the id or ARN of a key in AWS KMS',
  ],
  [
    {
      SVC_JWT_SECRET_PREVIOUS: `${PLANTED} of thirty-two characters`,
      SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS: PLANTED,
    },
    'SVC_JWT_SECRET_PREVIOUS: must not be set beside SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS; keep the one that is the secret',
  ],
  [
    { SVC_OIDC_SIGNING_KMS_KEY_ID: `${PLANTED},${PLANTED}` },
    'SVC_OIDC_SIGNING_KMS_KEY_ID: must be ids or ARNs of different keys in AWS KMS, comma-separated',
  ],
  [
    { SVC_OIDC_RSA_SIGNING_KMS_KEY_ID: `arn:aws:s3:::${PLANTED}` },
    'SVC_OIDC_RSA_SIGNING_KMS_KEY_ID: must be ids or ARNs of different keys in AWS KMS, comma-separated',
  ],
  [
    {
      SVC_OIDC_SIGNING_KMS_KEY_ID: 'alias/tokens',
      AWS_ENDPOINT_URL_KMS: `http://${PLANTED}.example`,
    },
    'AWS_ENDPOINT_URL_KMS: must be https (http only for localhost)',
  ],
  [{ SVC_IDPS: '' }, 'SVC_IDPS: at least one upstream identity provider is required'],
  [{ SVC_IDPS: 'demo,demo' }, 'SVC_IDPS: names a slug twice'],
  [{ SVC_IDPS: `${PLANTED}-` }, 'SVC_IDPS: has a malformed slug'],
  [{ SVC_IDP_DEMO_CLIENT_SECRET: '' }, 'SVC_IDP_DEMO_CLIENT_SECRET: is required'],
  [{ SVC_IDP_DEMO_TYPE: PLANTED }, 'SVC_IDP_DEMO_TYPE: must be oidc or saml'],
  [
    { SVC_IDP_DEMO_METADATA_URL: `https://${PLANTED}.example` },
    'SVC_IDP_DEMO_METADATA_URL: has no meaning for a provider of the type oidc',
  ],
  ...ofSamlProvider({ METADATA_URL: '' }, 'is required'),
  ...ofSamlProvider({ METADATA_URL: PLANTED }, 'must be a URL'),
  ...ofSamlProvider(
    { METADATA_URL: `http://${PLANTED}.example` },
    'must be https (http only for localhost)',
  ),
  ...ofSamlProvider(
    { METADATA_URL: `https://a:${PLANTED}@idp.example` },
    'must have no credentials and no fragment',
  ),
  ...ofSamlProvider(
    { SP_ENTITY_ID: PLANTED },
    'must be a URI, such as https://svc.example.com/saml/metadata',
  ),
  ...ofSamlProvider({ EMAIL_ATTRIBUTE: ' x' }, 'must be 512 printable ASCII characters at most'),
  ...ofSamlProvider({ DOMAIN_ATTRIBUTE: 'x ' }, 'must be 512 printable ASCII characters at most'),
  ...ofSamlProvider({ CLIENT_SECRET: PLANTED }, 'has no meaning for a provider of the type saml'),
  [{ SVC_IDP_DEMO_ISSUER: PLANTED }, 'SVC_IDP_DEMO_ISSUER: must be a URL'],
  [
    { SVC_IDP_DEMO_ISSUER: `http://${PLANTED}.example` },
    'SVC_IDP_DEMO_ISSUER: must be https (http only for localhost)',
  ],
  [{ SVC_CORS_ORIGINS: '*' }, 'SVC_CORS_ORIGINS: must name origins: * is refused'],
  [
    { SVC_CORS_ORIGINS: 'https://*.app.example' },
    'SVC_CORS_ORIGINS: must name origins: * is refused',
  ],
  [
    { SVC_CORS_ORIGINS: `https://app.example,${PLANTED}` },
    'SVC_CORS_ORIGINS: must be an http or https URL',
  ],
  [
    { SVC_AWS_AUDIENCE: `${PLANTED} ${PLANTED}` },
    'SVC_AWS_AUDIENCE: must be 1 to 255 printable ASCII characters without a space',
  ],
  [
    { SVC_DOCUMENT_KEY_KMS_KEY_ID: `${PLANTED}!` },
    'SVC_DOCUMENT_KEY_KMS_KEY_ID: must be ids or ARNs of different keys in AWS KMS, comma-separated',
  ],
  [
    { SVC_DOCUMENT_KEY_KMS_KEY_ID: `alias/${PLANTED}` },
    'SVC_DOCUMENT_KEY_KMS_KEY_ID: must not name an alias: what a key wrapped, only that key opens',
  ],
  [{ SVC_SSH_REQUIRE_SK: PLANTED }, 'SVC_SSH_REQUIRE_SK: must be true or false'],
  [{ SVC_ACCESS_BY_GROUPS: PLANTED }, 'SVC_ACCESS_BY_GROUPS: must be true or false'],
  ...ofGitHubApp({ SVC_GITHUB_APP_ID: PLANTED }, 'must be the number of a GitHub App'),
  ...ofGitHubApp(
    { SVC_GITHUB_APP_KEY: PLANTED },
    'must be an RSA private key in PEM, base64 of it, or a readable file',
  ),
  ...ofGitHubApp(
    { SVC_GITHUB_APP_NAME: ` ${PLANTED}` },
    'must be 64 printable ASCII characters at most',
  ),
  ...ofGitHubApp(
    { SVC_GITHUB_APP_CLIENT_ID: `${PLANTED} ${PLANTED}` },
    'must be printable ASCII without spaces',
  ),
  ...ofGitHubApp(
    { SVC_GITHUB_APP_CLIENT_SECRET: `${PLANTED} ${PLANTED}` },
    'must be printable ASCII without spaces',
  ),
  ...ofGitHubApp({ SVC_GITHUB_WEBHOOK_SECRET: 'planted' }, 'must have at least 8 characters'),
  [
    { SVC_GITHUB_API_URL: `http://${PLANTED}.example` },
    'SVC_GITHUB_API_URL: must be https (http only for localhost)',
  ],
  [{ SVC_GITHUB_WEB_URL: PLANTED }, 'SVC_GITHUB_WEB_URL: must be an http or https URL'],
  [{ SVC_LOG_FORMAT: PLANTED }, 'SVC_LOG_FORMAT: must be text or json'],
  [
    { RUST_LOG: `info,http=${PLANTED}` },
    'RUST_LOG: must be directives such as info,security=warn; levels are trace to off',
  ],
  [
    { SVC_ALLOWED_DOMAINS: `corp.example,"${PLANTED}"` },
    'SVC_ALLOWED_DOMAINS: must be domains such as corp.example, comma-separated',
  ],
  [
    { SVC_BOOTSTRAP_ADMINS: `ada@corp.example,${PLANTED}` },
    'SVC_BOOTSTRAP_ADMINS: must be e-mail addresses such as ada@corp.example, comma-separated',
  ],
  [
    { SVC_ALLOWED_AAGUIDS: `${AAGUID},${PLANTED}` },
    'SVC_ALLOWED_AAGUIDS: must be fips-only, yubikey-5, or a comma-separated list of AAGUIDs',
  ],
  [
    { SVC_TRUSTED_PROXIES: `10.0.0.0/8,${PLANTED}` },
    'SVC_TRUSTED_PROXIES: must be a comma-separated list of addresses or CIDR ranges',
  ],
  [
    { SVC_TRUSTED_PROXIES: '10.0.0.0/33' },
    'SVC_TRUSTED_PROXIES: must be a comma-separated list of addresses or CIDR ranges',
  ],
  [
    { SVC_BASE_URL: `http://${PLANTED}.example` },
    'SVC_BASE_URL: must be https (http only for a loopback host)',
  ],
  [
    { SVC_RP_ID: `${PLANTED}.example` },
    'SVC_RP_ID: must be the host of SVC_BASE_URL or a parent domain of it',
  ],
  [
    { SVC_LISTEN_ADDR: PLANTED },
    'SVC_LISTEN_ADDR: must be ADDRESS:PORT, such as [::]:3000 or 127.0.0.1:3000',
  ],
  [
    { SVC_CERTIFICATION_TEST_TOKEN: PLANTED },
    'SVC_CERTIFICATION_TEST_TOKEN: must have at least 32 characters',
  ],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: PLANTED },
    'OTEL_EXPORTER_OTLP_ENDPOINT: must be an http or https URL without query and fragment',
  ],
  [
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
      OTEL_EXPORTER_OTLP_PROTOCOL: PLANTED,
    },
    'OTEL_EXPORTER_OTLP_PROTOCOL: must be http/protobuf, the only one that is spoken',
  ],
  [{ SVC_CLEANUP_INTERVAL: '-1' }, 'SVC_CLEANUP_INTERVAL: must be a whole number'],
  [
    { SVC_AUTH_EVENTS_RETENTION_DAYS: '-1' },
    'SVC_AUTH_EVENTS_RETENTION_DAYS: must be a whole number',
  ],
  [
    { SVC_OAUTH_EVENTS_RETENTION_DAYS: '-1' },
    'SVC_OAUTH_EVENTS_RETENTION_DAYS: must be a whole number',
  ],
  [{ SVC_SESSION_HOURS: '0' }, 'SVC_SESSION_HOURS: must be between 1 and 12'],
  [
    { SVC_EXTRA_CA_CERTS: `/${PLANTED}.pem` },
    'SVC_EXTRA_CA_CERTS: must be PEM certificates, or a readable file of them',
  ],
  [
    { SVC_DATABASE_URL: `mysql://${PLANTED}` },
    'SVC_DATABASE_URL: must be a postgres:// URL (docs/operations/databases.md)',
  ],
  [
    { SVC_DATABASE_URL: `postgres://svc:${PLANTED}@a:5432,b:99999/svc` },
    'SVC_DATABASE_URL: must be like postgres://user:password@host:port,host:port/database (docs/operations/databases.md)',
  ],
  [
    { SVC_DATABASE_URL: `postgres://a,b/svc?target_session_attrs=${PLANTED}` },
    'SVC_DATABASE_URL: target_session_attrs must be read-write, primary or any (docs/operations/databases.md)',
  ],
  [{ SVC_DB_MAX_CONNECTIONS: PLANTED }, 'SVC_DB_MAX_CONNECTIONS: must be a whole number'],
  [{ SVC_WORKERS: '65' }, 'SVC_WORKERS: must be between 1 and 64'],
  [
    { SVC_DATABASE_POOLER: PLANTED, SVC_DATABASE_DIRECT_URL: 'postgres://a/svc' },
    'SVC_DATABASE_POOLER: must be transaction or transaction-prepared',
  ],
  [
    { SVC_DATABASE_POOLER: 'transaction', SVC_DATABASE_DIRECT_URL: `mysql://${PLANTED}` },
    'SVC_DATABASE_DIRECT_URL: must be a postgres:// URL (docs/operations/databases.md)',
  ],
  [
    { SVC_DATABASE_POOLER: 'transaction' },
    'SVC_DATABASE_DIRECT_URL: is required where SVC_DATABASE_POOLER is set',
  ],
  [
    { SVC_DATABASE_FAILOVER: PLANTED },
    'SVC_DATABASE_FAILOVER: must be synchronous or asynchronous',
  ],
  [{ SVC_MTLS_PORT: '0' }, 'SVC_MTLS_PORT: must be between 1 and 65535'],
  [
    { SVC_MTLS_CLIENT_CA_CERTS: PLANTED },
    'SVC_MTLS_CLIENT_CA_CERTS: must be PEM certificates, or a readable file of them',
  ],
  [
    { SVC_METRICS_BEARER_TOKEN: `${PLANTED}\n` },
    'SVC_METRICS_BEARER_TOKEN: must be printable ASCII: it has to fit into a header',
  ],
  [{ SVC_SSH_REQUIRE_SK: PLANTED }, 'SVC_SSH_REQUIRE_SK: must be true or false'],
  [
    { SVC_SSH_CA_KMS_KEY_ID: `${PLANTED} ${PLANTED}` },
    'SVC_SSH_CA_KMS_KEY_ID: must be ids or ARNs of different keys in AWS KMS, comma-separated',
  ],
  [
    { SVC_SSH_PRINCIPALS: `email,${PLANTED}` },
    'SVC_SSH_PRINCIPALS: must be email, username, or both',
  ],
  [
    { SVC_SSH_PRINCIPALS_DOMAIN: `${PLANTED} ${PLANTED}` },
    'SVC_SSH_PRINCIPALS_DOMAIN: must be a domain such as corp.example',
  ],
  [
    { SVC_SECURITY_CONTACT: PLANTED },
    'SVC_SECURITY_CONTACT: must be an https:, mailto: or tel: URI',
  ],
  [
    { SVC_OIDC_SIGNING_KEY: PLANTED },
    'SVC_OIDC_SIGNING_KEY: must be P-256 keys in PEM, a private one first',
  ],
  [
    { SVC_OIDC_RSA_SIGNING_KEY: `-----BEGIN PRIVATE KEY-----\n${PLANTED}` },
    'SVC_OIDC_RSA_SIGNING_KEY: must be RSA keys of 3072 bits or more in PEM, a private one first',
  ],
  [{ SVC_DEVICE_CODE_EXPIRES: '59' }, 'SVC_DEVICE_CODE_EXPIRES: must be between 60 and 3600'],
  [{ SVC_DEVICE_POLL_INTERVAL: '61' }, 'SVC_DEVICE_POLL_INTERVAL: must be between 1 and 60'],
  [{ SVC_RP_NAME: PLANTED.repeat(5) }, 'SVC_RP_NAME: must have 64 characters at most'],
  [{ SVC_ORG_NAME: PLANTED.repeat(5) }, 'SVC_ORG_NAME: must have 64 characters at most'],
  [
    { SVC_ALLOWED_DOMAIN: PLANTED },
    'SVC_ALLOWED_DOMAIN: is not a variable of this service; did you mean SVC_ALLOWED_DOMAINS?',
  ],
  [
    { SVC_IDP_DEMO_NAMES: PLANTED },
    'SVC_IDP_DEMO_NAMES: is not a variable of an identity provider; did you mean SVC_IDP_DEMO_NAME?',
  ],
  [
    { SVC_AUDIT_SEAL_KEY: `-----BEGIN PRIVATE KEY-----\n${PLANTED}` },
    'SVC_AUDIT_SEAL_KEY: must be an Ed25519 private key in PEM, base64 of it, or a readable file',
  ],
  [
    { SVC_AUDIT_SEAL_KMS_KEY_ID: `${PLANTED} ${PLANTED}` },
    'SVC_AUDIT_SEAL_KMS_KEY_ID: must be the id or ARN of a key in AWS KMS',
  ],
  [{ SVC_AUDIT_SEAL_BUCKET: `${PLANTED}*` }, 'SVC_AUDIT_SEAL_BUCKET: must be the name of a bucket'],
  [
    { SVC_AUDIT_SEAL_BUCKET: 'seal', SVC_AUDIT_SEAL_DAYS: '0' },
    'SVC_AUDIT_SEAL_DAYS: must be between 1 and 36500',
  ],
  [{ SVC_S3_CONFIG_BUCKET: `${PLANTED}*` }, 'SVC_S3_CONFIG_BUCKET: must be the name of a bucket'],
  [
    { SVC_S3_CONFIG_BUCKET: 'config', SVC_S3_CONFIG_REGION: `${PLANTED}*` },
    'SVC_S3_CONFIG_REGION: must be a region such as eu-central-1, or auto',
  ],
  [
    { SVC_S3_CONFIG_BUCKET: 'config', SVC_S3_CONFIG_ENDPOINT: `http://${PLANTED}.example` },
    'SVC_S3_CONFIG_ENDPOINT: must be https (http only for localhost)',
  ],
  [
    { SVC_S3_CONFIG_BUCKET: 'config', SVC_S3_CONFIG_POLL_INTERVAL: '0' },
    'SVC_S3_CONFIG_POLL_INTERVAL: must be between 1 and 86400',
  ],
  [
    { SVC_BASE_URL: 'https://login.example', SVC_CERTIFICATION_TEST_TOKEN: PLANTED.repeat(5) },
    NOT_MEANT,
  ],
  [
    {
      SVC_BASE_URL: 'https://login.example',
      SVC_CERTIFICATION_TEST_TOKEN: PLANTED.repeat(5),
      SVC_CERTIFICATION_HOST: 'other.example',
    },
    NOT_MEANT,
  ],
];

/**
 * Every STARTED-th wrong configuration also starts a process. All are read in this process, which
 * is faster.
 */
const STARTED = atScale({ small: 12, full: 1 });

/** Values of which at least one is wrong for each variable that has wrong values at all. */
const WRONG_FOR_MANY = ['*', '*\n', '*'.repeat(65)];

describe('the start', () => {
  let folder: string;
  let port: number;
  let idp: DemoIdentityProvider;
  let database: TestDatabase;

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    writeFileSync(APP_KEY, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    port = await freePort();
    database = await createTestDatabase();
    idp = await startDemoIdentityProvider({
      ...TEST_CLIENT,
      redirectUri: `http://localhost:${port}/oauth/callback`,
    });
  });
  afterAll(async () => {
    await idp.close();
    await database.drop();
    await removeDirectory(dirname(APP_KEY));
    await removeDirectory(folder);
  });

  const variables = (environment: Record<string, string>) => ({
    SVC_BASE_URL: `http://localhost:${port}`,
    SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
    SVC_DATABASE_URL: database.url,
    SVC_DATA_DIR: join(folder, 'data'),
    ...providerEnvironment(idp.issuer),
    ...environment,
  });
  const start = (environment: Record<string, string>) =>
    startServerProcess('main.js', variables(environment), { cwd: folder });
  const outcome = async (environment: Record<string, string>) => {
    const server = start(environment);
    return { status: await server.ended, output: server.output().trim() };
  };

  /** Reads the configuration as a start does. Returns the message of the error, or `none`. */
  const complaint = async (environment: Record<string, string>) => {
    const reading = configurationOf(withoutEmpty(variables(environment)));
    return reading.then(
      () => 'none',
      (error: unknown) => (error as Error).message,
    );
  };

  it.concurrent.each(FATAL)(
    'with %j ends with status 1 and says: %s',
    async (environment, line) => {
      expect(line).not.toContain(PLANTED);
      expect(await complaint(environment)).toBe(line);
      const isStarted = FATAL.findIndex((row) => row[0] === environment) % STARTED === 0;
      if (isStarted) expect(await outcome(environment)).toEqual({ status: 1, output: line });
    },
  );

  it.concurrent.each(['main.js', 'migrate.js'])(
    'of %s with an argument ends with status 2, and names it without its value',
    async (program) => {
      const ended = await run(program, ['--foo', `--key=${PLANTED}`, PLANTED], { cwd: folder });
      expect(ended).toMatchObject({ status: 2, stdout: '' });
      expect(ended.stderr).toMatch(
        /^\w+\.js takes no arguments(?: but --workers N)?, and got --foo, --key, a value\. .*docs\/operations\/variables\.md\)\.\n$/,
      );
      expect(ended.stderr).not.toContain(PLANTED);
    },
  );

  it('is tested with a wrong value of every variable that can have one', () => {
    const refused = [...VARIABLES.values()]
      .filter(({ shape }) => WRONG_FOR_MANY.some((value) => !shape.safeParse(value).success))
      .map(({ name }) => name);
    expect(refused.length).toBeGreaterThan(20);
    const tried = new Set(FATAL.flatMap(([environment]) => Object.keys(environment)));
    const below = ['SVC_TLS_CERT', 'SVC_TLS_KEY'];
    expect(refused.filter((name) => !tried.has(name) && !below.includes(name))).toEqual([]);
  });

  it.concurrent.each(['SVC_TLS_CERT', 'SVC_TLS_KEY'])(
    'with %s alone names the other',
    async (name) => {
      const other = name === 'SVC_TLS_CERT' ? 'SVC_TLS_KEY' : 'SVC_TLS_CERT';
      const { status, output } = await outcome({ [name]: `/${PLANTED}.pem` });
      expect(status).toBe(1);
      expect(output).toMatch(new RegExp(`^${other}: `, 'm'));
      expect(output).not.toContain(PLANTED);
    },
  );

  it('with TLS files that cannot be read names both', async () => {
    const { status, output } = await outcome({
      SVC_BASE_URL: '',
      SVC_RP_ID: 'login.example',
      SVC_TLS_CERT: `/${PLANTED}.pem`,
      SVC_TLS_KEY: `/${PLANTED}.key`,
    });
    expect({ status, lines: output.split('\n') }).toEqual({
      status: 1,
      lines: [
        'SVC_TLS_CERT: must be PEM certificates, base64 of them, or a readable file',
        'SVC_TLS_KEY: must be a PEM private key, base64 of it, or a readable file',
      ],
    });
  });

  it('reports a provider of another type, and an unreachable one', async () => {
    const away = await freePort();
    const [unreachable, mismatch, common] = await Promise.all([
      outcome({ SVC_IDP_DEMO_ISSUER: `http://127.0.0.1:${away}` }),
      outcome({ SVC_IDP_DEMO_ISSUER: `${idp.issuer}/` }),
      outcome({ SVC_IDP_DEMO_ISSUER: 'https://login.microsoftonline.com/common/v2.0' }),
    ]);
    expect([unreachable.status, mismatch.status, common.status]).toEqual([1, 1, 1]);
    const complaintOf = ({ output }: { output: string }) => output.split('\n').at(-1);
    expect(complaintOf(unreachable)).toBe('SVC_IDP_DEMO_ISSUER: discovery failed: ECONNREFUSED');
    expect(complaintOf(mismatch)).toMatch(/^SVC_IDP_DEMO_ISSUER: issuer mismatch/);
    expect(complaintOf(common)).toMatch(/^SVC_IDP_DEMO_ISSUER: the multi-tenant "common"/);
    expect(unreachable.output).not.toContain(String(away));
  });

  it('continues with warnings, and in certification test mode without a provider', async () => {
    const server = start({
      SVC_BASE_URL: 'https://login.example.com', // looks like production, so that the start warns
      SVC_MTLS_PORT: '8443',
      SVC_JWT_SECRET: 'abcd'.repeat(10),
      SVC_IDPS: '',
      SVC_CERTIFICATION_TEST_TOKEN: 'a token that only the conformance suite knows',
      SVC_CERTIFICATION_HOST: 'Login.example.com',
      SVC_IDP_CORP_CLIENT_ID: 'x',
      SVC_SERVICE_HOST: '10.0.0.1',
      SVC_S3_CONFIG_REGION: 'x',
      SVC_OIDC_SIGNING_KEY: '',
      SVC_OIDC_RSA_SIGNING_KEY: '',
      SVC_LOG_FORMAT: 'json',
    });
    await server.printed(/is served on port/);
    server.signal('SIGTERM');
    expect(await server.ended).toBe(0);
    const lines = server
      .output()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, string>);
    const warned = lines
      .filter(({ level }) => level === 'warn')
      .map(({ context, msg }) => `${context}: ${msg}`);
    expect(warned).toEqual([
      'config: SVC_JWT_SECRET: has fewer than 8 distinct bytes',
      expect.stringMatching(/^config: SVC_TRUSTED_PROXIES: is empty/),
      'config: SVC_MTLS_PORT: has no effect without SVC_TLS_CERT and SVC_TLS_KEY',
      'config: SVC_S3_CONFIG_REGION: has no effect without SVC_S3_CONFIG_BUCKET',
      ...['DEMO_TYPE', 'DEMO_ISSUER', 'DEMO_CLIENT_ID', 'DEMO_CLIENT_SECRET', 'CORP_CLIENT_ID'].map(
        (name) => `config: SVC_IDP_${name}: belongs to no provider that SVC_IDPS lists`,
      ),
      // The PostgreSQL of the tests runs with these settings off, which is faster.
      expect.stringMatching(/^database: SVC_DATABASE_URL: fsync is off: /),
      expect.stringMatching(/^database: SVC_DATABASE_URL: full_page_writes is off: /),
      expect.stringMatching(/^token-signing: SVC_OIDC_SIGNING_KEY: is not set;/),
      expect.stringMatching(/^token-signing: SVC_OIDC_RSA_SIGNING_KEY: is not set;/),
      expect.stringMatching(/^security: Certification test mode is on/),
    ]);
    expect(server.output()).not.toContain('a token that only');
  });

  it('10.28 names SVC_DATABASE_URL where the database refuses the connection', async () => {
    const url = new URL(database.url.replace('postgres://', 'http://').replace('@/', '@x/'));
    const { status, output } = await outcome({
      SVC_DATABASE_URL: `postgres://${url.username}@/no_such_database${url.search}`,
    });
    expect(status).toBe(1);
    expect(output).toMatch(/^SVC_DATABASE_URL: the database cannot be reached: .*no_such_database/);
  });

  it('fails on a port that is taken, and names it', async () => {
    const { status, output } = await outcome({ SVC_LISTEN_ADDR: new URL(idp.issuer).host });
    expect(status).toBe(1);
    expect(output.split('\n').at(-1)).toMatch(/^SVC_LISTEN_ADDR: .*EADDRINUSE/);
  });
});
