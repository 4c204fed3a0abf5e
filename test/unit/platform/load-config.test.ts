import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ConfigProblems, loadConfig, loadPart } from '../../../src/platform/config/load-config.js';
import { TABLE } from '../../../src/platform/config/table/settings.js';

const WORKING = {
  SVC_JWT_SECRET: 'a root secret only this test knows',
  SVC_IDPS: 'corp-one',
  SVC_IDP_CORP_ONE_TYPE: 'oidc',
  SVC_IDP_CORP_ONE_ISSUER: 'https://login.example.org/',
  SVC_IDP_CORP_ONE_CLIENT_ID: 'client',
  SVC_IDP_CORP_ONE_CLIENT_SECRET: 'the secret value',
};

function problemsOf(environment: Record<string, string>): readonly string[] {
  try {
    loadConfig(environment);
  } catch (error) {
    if (error instanceof ConfigProblems) return error.problems;
    throw error;
  }
  return [];
}

describe('loadConfig', () => {
  it('requires a secret and a provider, and has a default for every other variable', () => {
    const { config, warnings } = loadConfig(WORKING);
    expect(warnings).toEqual([]);
    expect(config.http).toEqual({
      baseUrl: 'http://localhost:3000',
      listen: { host: '::', port: 3000 },
      tls: undefined,
      mtls: { port: 8443, clientCaCerts: [] },
      trustedProxies: [],
      corsOrigins: [],
    });
    expect(config.relyingParty).toEqual({ id: 'localhost', name: 'svc', organizationName: 'svc' });
    expect(config.database).toEqual({
      url: undefined,
      dataDir: './data',
      maxConnections: 25,
      failover: undefined,
      pooler: undefined,
      directUrl: undefined,
    });
    expect(config.ssh.caKeyPath).toBe('data/ssh_ca_key');
    expect(config.session.hours).toBe(8);
    expect(config.oidc).toEqual({
      signingKeys: { ec: undefined, rsa: undefined },
      signingKmsKeyIds: { ec: [], rsa: [] },
      deviceCode: { expiresSeconds: 600, pollIntervalSeconds: 5 },
    });
    expect(config.upstream.providers).toEqual([
      {
        slug: 'corp-one',
        type: 'oidc',
        name: 'corp-one',
        issuer: 'https://login.example.org/',
        clientId: 'client',
        clientSecret: 'the secret value',
      },
    ]);
  });

  it('is frozen to its leaves', () => {
    const { config } = loadConfig(WORKING);
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config.http.listen)).toBe(true);
    expect(Object.isFrozen(config.upstream.providers[0])).toBe(true);
  });

  it('names every missing variable of an empty environment at once', () => {
    expect(problemsOf({})).toEqual([
      'SVC_JWT_SECRET: is required',
      'SVC_IDPS: at least one upstream identity provider is required',
    ]);
  });

  it('treats an empty string as unset', () => {
    expect(problemsOf({ ...WORKING, SVC_JWT_SECRET: '' })).toEqual(['SVC_JWT_SECRET: is required']);
    expect(loadConfig({ ...WORKING, SVC_RP_NAME: '' }).config.relyingParty.name).toBe('svc');
  });

  it.each([
    ['SVC_JWT_SECRET', 'too short for a root secret', 'must have at least 32 characters'],
    ['SVC_JWT_SECRET', 'x'.repeat(40), 'must not be one repeated character'],
    ['SVC_BASE_URL', 'http://keys.example.org', 'must be https (http only for a loopback host)'],
    [
      'SVC_BASE_URL',
      'https://keys.example.org/path',
      'must be an origin only, without path, query or credentials',
    ],
    ['SVC_BASE_URL', 'ftp://keys.example.org', 'must be an http or https URL'],
    ['SVC_RP_ID', 'intranet', 'must be localhost or a domain name of two labels or more'],
    ['SVC_RP_ID', 'example.org', 'must be the host of SVC_BASE_URL or a parent domain of it'],
    ['SVC_LISTEN_ADDR', '3000', 'must be ADDRESS:PORT, such as [::]:3000 or 127.0.0.1:3000'],
    ['SVC_LISTEN_ADDR', '[::]:99999', 'must be ADDRESS:PORT, such as [::]:3000 or 127.0.0.1:3000'],
    [
      'SVC_TRUSTED_PROXIES',
      '10.0.0.0/33',
      'must be a comma-separated list of addresses or CIDR ranges',
    ],
    [
      'SVC_TRUSTED_PROXIES',
      'proxy.example',
      'must be a comma-separated list of addresses or CIDR ranges',
    ],
    ['SVC_CORS_ORIGINS', 'https://a.example,*', 'must name origins: * is refused'],
    ['SVC_DATABASE_URL', 'mysql://x', 'must be a postgres:// URL (docs/operations/databases.md)'],
    [
      'SVC_DATABASE_URL',
      'postgres://svc@a,b/svc?target_session_attrs=standby',
      'target_session_attrs must be read-write, primary or any (docs/operations/databases.md)',
    ],
    ['SVC_DB_MAX_CONNECTIONS', '0', 'must be between 1 and 1000'],
    ['SVC_DATABASE_FAILOVER', 'sync', 'must be synchronous or asynchronous'],
    ['SVC_SESSION_HOURS', 'eight', 'must be a whole number'],
    ['SVC_DEVICE_CODE_EXPIRES', '3601', 'must be between 60 and 3600'],
    ['SVC_DEVICE_POLL_INTERVAL', '0', 'must be between 1 and 60'],
    [
      'SVC_ALLOWED_AAGUIDS',
      'yubikey-5,fips-only',
      'must be fips-only, yubikey-5, or a comma-separated list of AAGUIDs',
    ],
    [
      'SVC_ALLOWED_AAGUIDS',
      'fa2b99dc-9e39-4257-8f92',
      'must be fips-only, yubikey-5, or a comma-separated list of AAGUIDs',
    ],
    [
      'SVC_ALLOWED_AAGUIDS',
      ',',
      'must be fips-only, yubikey-5, or a comma-separated list of AAGUIDs',
    ],
    ['SVC_LOG_FORMAT', 'xml', 'must be text or json'],
    ['SVC_IDPS', ',', 'at least one upstream identity provider is required'],
    ['SVC_IDPS', 'corp-one,corp-one', 'names a slug twice'],
    ['SVC_IDPS', '-corp', 'has a malformed slug'],
    ['SVC_IDPS', 'corp_one', 'has a malformed slug'],

    ['SVC_IDP_CORP_ONE_TYPE', 'ldap', 'must be oidc or saml'],
    [
      'SVC_IDP_CORP_ONE_ISSUER',
      'http://login.example.org',
      'must be https (http only for localhost)',
    ],
    ['SVC_IDP_CORP_ONE_ISSUER', 'login', 'must be a URL'],
    [
      'SVC_EXTRA_CA_CERTS',
      '/nowhere/ca.pem',
      'must be PEM certificates, or a readable file of them',
    ],
    [
      'RUST_LOG',
      'info,scim=loud',
      'must be directives such as info,security=warn; levels are trace to off',
    ],
    ['SVC_AUTH_EVENTS_RETENTION_DAYS', '-4', 'must be a whole number'],
    ['SVC_CLEANUP_INTERVAL', '86401', 'must be between 0 and 86400'],
    ['SVC_JWT_HMAC_KMS_KEY_ID', 'a key', 'must be the id or ARN of a key in AWS KMS'],
  ])('%s=%s is refused: %s', (name, value, problem) => {
    expect(problemsOf({ ...WORKING, [name]: value })).toContain(`${name}: ${problem}`);
  });

  it('reports problems of every kind at once, each by its own rule', () => {
    const problems = problemsOf({
      SVC_BASE_URL: 'http://keys.example.org',
      SVC_EXTRA_CA_CERTS: '/nowhere/ca.pem',
      RUST_LOG: 'x=loud',
      SVC_LOG_FORMAT: 'xml',
      SVC_TLS_KEY: 'x',
    });
    expect(problems.map((line) => line.split(':')[0]).toSorted()).toEqual([
      'RUST_LOG',
      'SVC_BASE_URL',
      'SVC_EXTRA_CA_CERTS',
      'SVC_IDPS',
      'SVC_JWT_SECRET',
      'SVC_LOG_FORMAT',
      'SVC_TLS_CERT',
      'SVC_TLS_KEY',
    ]);
  });

  it('warns of settings without effect', () => {
    const { warnings } = loadConfig({
      ...WORKING,
      SVC_GITHUB_API_URL: 'https://github.example.com/api/v3',
      SVC_S3_CONFIG_REGION: 'x',
    });
    expect(warnings).toEqual([
      'SVC_S3_CONFIG_REGION: has no effect without SVC_S3_CONFIG_BUCKET',
      'SVC_GITHUB_API_URL: has no effect without SVC_GITHUB_APP_ID',
    ]);
  });

  it('names every missing variable of a GitHub App that is configured in part', () => {
    const problems = problemsOf({ ...WORKING, SVC_GITHUB_APP_ID: '7', SVC_GITHUB_APP_NAME: 'svc' });
    expect(problems.map((line) => line.split(':')[0])).toEqual([
      'SVC_GITHUB_APP_KEY',
      'SVC_GITHUB_APP_CLIENT_ID',
      'SVC_GITHUB_APP_CLIENT_SECRET',
      'SVC_GITHUB_WEBHOOK_SECRET',
    ]);
  });

  it('takes the key of a GitHub App in each form, and its pages from the address of its API', () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pkcs1 = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
    const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const app = {
      SVC_GITHUB_APP_ID: '7',
      SVC_GITHUB_APP_NAME: 'svc',
      SVC_GITHUB_APP_CLIENT_ID: 'Iv1.7',
      SVC_GITHUB_APP_CLIENT_SECRET: 'secret-of-app',
      SVC_GITHUB_WEBHOOK_SECRET: 'secret-of-hook',
    };
    const githubOf = (more: object) => loadConfig({ ...WORKING, ...app, ...more }).config.github;
    for (const key of [pkcs1, pkcs8, Buffer.from(pkcs1).toString('base64')]) {
      expect(githubOf({ SVC_GITHUB_APP_KEY: key })?.appKey).toBe(pkcs8);
    }
    const onServer = {
      SVC_GITHUB_APP_KEY: pkcs8,
      SVC_GITHUB_API_URL: 'https://ghe.example.com/api/v3/',
    };
    expect(githubOf({ SVC_GITHUB_APP_KEY: pkcs8 })).toMatchObject({
      apiUrl: 'https://api.github.com',
      webUrl: 'https://github.com',
    });
    expect(githubOf(onServer)).toMatchObject({
      apiUrl: 'https://ghe.example.com/api/v3',
      webUrl: 'https://ghe.example.com',
    });
    const plain = { SVC_GITHUB_API_URL: 'http://ghe.example.com/api/v3' };
    const plainWeb = { SVC_GITHUB_WEB_URL: 'http://ghe.example.com' };
    const none = { SVC_GITHUB_APP_KEY: 'no key' };
    for (const wrong of [plain, plainWeb, none]) {
      const [name] = Object.keys(wrong);
      const problems = problemsOf({ ...WORKING, ...app, ...onServer, ...wrong });
      expect(problems.map((line) => line.split(':')[0])).toEqual([name]);
    }
  });

  it('never repeats a value', () => {
    const secret = 'hunter2hunter2';
    const all = Object.fromEntries(
      [
        ...Object.keys(WORKING),
        'SVC_BASE_URL',
        'SVC_DATABASE_URL',
        'SVC_ALLOWED_AAGUIDS',
        'SVC_LOG_FORMAT',
        'SVC_EXTRA_CA_CERTS',
        'SVC_SSH_PRINCIPALS',
        'SVC_TRUSTED_PROXIES',
      ].map((name) => [name, secret]),
    );
    const problems = problemsOf(all);
    expect(problems.length).toBeGreaterThan(5);
    expect(problems.join('\n')).not.toContain(secret);
  });

  it('refuses an address as relying party id', () => {
    expect(problemsOf({ ...WORKING, SVC_BASE_URL: 'http://127.0.0.1:3000' })).toEqual([
      expect.stringMatching(/^SVC_RP_ID: an address/),
    ]);
  });

  it('warns of a secret with few distinct bytes, and of missing trusted proxies', () => {
    const { warnings } = loadConfig({
      ...WORKING,
      SVC_JWT_SECRET: 'abcabcabcabcabcabcabcabcabcabcabc',
      SVC_BASE_URL: 'https://keys.example.org',
    });
    expect(warnings).toEqual([
      'SVC_JWT_SECRET: has fewer than 8 distinct bytes',
      expect.stringMatching(/^SVC_TRUSTED_PROXIES:/),
    ]);
  });

  it.each([
    ['a parent domain of the host', 'example.org', 1],
    ['the host', 'keys.example.org', 0],
    ['the host in capitals', 'KEYS.example.org', 0],
    ['unset', '', 0],
  ])('10.1 warns where the relying party id is %s', (_, rpId, expected) => {
    const { warnings } = loadConfig({
      ...WORKING,
      SVC_BASE_URL: 'https://keys.example.org',
      SVC_RP_ID: rpId,
    });
    const named = warnings.filter((warning) => warning.startsWith('SVC_RP_ID: '));
    expect(named).toHaveLength(expected);
  });

  it('reads lists in lower case, and policies by name', () => {
    const { config } = loadConfig({
      ...WORKING,
      SVC_ALLOWED_DOMAINS: 'Example.ORG, b.example',
      SVC_ALLOWED_AAGUIDS: 'FA2B99DC-9E39-4257-8F92-4A30D23C4118',
      SVC_SSH_PRINCIPALS: 'email,username',
      SVC_SSH_REQUIRE_SK: 'true',
    });
    expect(config.enrollment.allowedDomains).toEqual(new Set(['example.org', 'b.example']));
    expect(config.enrollment.allowedAaguids).toEqual({
      kind: 'list',
      aaguids: new Set(['fa2b99dc-9e39-4257-8f92-4a30d23c4118']),
    });
    expect(config.ssh.principals).toEqual(new Set(['email', 'username']));
    expect(config.ssh.requireSecurityKey).toBe(true);
  });

  it('reads the domains and addresses of enrollment as stored addresses have them', () => {
    const { enrollment } = loadConfig({
      ...WORKING,
      SVC_ALLOWED_DOMAINS: 'Müller.example, localhost,',
      SVC_BOOTSTRAP_ADMINS: 'Ada@Corp.example,bob@localhost',
    }).config;
    expect(enrollment.allowedDomains).toEqual(new Set(['xn--mller-kva.example', 'localhost']));
    expect(enrollment.bootstrapAdmins).toEqual(new Set(['ada@corp.example', 'bob@localhost']));
  });

  it.each([' ', ',', '"corp.example"', '@corp.example', '*.corp.example', 'https://corp.example'])(
    'refuses %s as a list of domains or addresses, which no address would match',
    (value) => {
      const environment = { SVC_ALLOWED_DOMAINS: value, SVC_BOOTSTRAP_ADMINS: value };
      expect(problemsOf({ ...WORKING, ...environment })).toEqual([
        'SVC_ALLOWED_DOMAINS: must be domains such as corp.example, comma-separated',
        'SVC_BOOTSTRAP_ADMINS: must be e-mail addresses such as ada@corp.example, comma-separated',
      ]);
    },
  );

  it('knows how the standbys replicate, in the commands beside the service too', () => {
    const environment = { SVC_DATABASE_FAILOVER: 'asynchronous' };
    expect(loadConfig({ ...WORKING, ...environment }).config.database.failover).toBe(
      'asynchronous',
    );
    expect(loadPart(TABLE.database, environment).failover).toBe('asynchronous');
    expect(loadPart({ database: TABLE.database }, environment).database.failover).toBe(
      'asynchronous',
    );
  });

  it('warns of several hosts that may all be used, since a standby takes no writes', () => {
    const urls = [
      'postgres://a/x',
      'postgres://a,b/x?target_session_attrs=any',
      'postgres://a,b/x',
    ];
    const warned = urls.map(
      (url) => loadConfig({ ...WORKING, SVC_DATABASE_URL: url }).warnings.length,
    );
    expect(warned).toEqual([0, 0, 1]);
  });

  it('needs only a URL for the database alone', () => {
    expect(loadPart(TABLE.database, { SVC_DATABASE_URL: 'postgres://db/x' }).url).toBe(
      'postgres://db/x',
    );
    expect(() => loadPart(TABLE.database, { SVC_DB_MAX_CONNECTIONS: '-1' })).toThrow(
      ConfigProblems,
    );
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector.example:4317'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'ftp://collector.example'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector.example '],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector.example\0'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector.example?key=1'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector.example/#top'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ])('reports an exporter that cannot be built as one problem among all: %s=%s', (name, value) => {
    const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318', [name]: value };
    const problems = problemsOf({ ...WORKING, SVC_IDPS: '', ...environment });
    expect(problems.map((line) => line.split(':')[0]).toSorted()).toEqual([name, 'SVC_IDPS']);
    expect(problems.join()).not.toContain(value);
  });

  it('turns tracing off without a collector', () => {
    const tracing = (environment: Record<string, string>) =>
      loadConfig({ ...WORKING, ...environment }).config.tracing;
    expect(tracing({ OTEL_SERVICE_NAME: 'x', OTEL_EXPORTER_OTLP_ENDPOINT: '' })).toBeUndefined();
    expect(tracing({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otel.example' })).toEqual({
      endpoint: 'https://otel.example',
      serviceName: 'svc-server',
    });
  });
});
