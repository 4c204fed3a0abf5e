import { describe, expect, it } from 'vitest';
import { ConfigProblems } from '../../../src/platform/config/load-config.js';
import { VARIABLES } from '../../../src/platform/config/table/settings.js';
import { validated } from '../../../src/platform/config-sources/stored-configuration.js';
import { jsonFormOf } from '../../../src/platform/config-sources/json-value.js';
import { makeTlsAuthority } from '../../support/tls-authority.js';

const tls = makeTlsAuthority();
const other = makeTlsAuthority('Another authority');

const DOCUMENT = {
  jwt_secret: 'a root secret only this test knows',
  idps: [
    {
      id: 'corp-one',
      type: 'oidc',
      issuer: 'https://login.example.org/',
      client_id: 'client',
      client_secret: 'the secret value',
    },
  ],
};

const bytesOf = (document: object | string) =>
  Buffer.from(
    typeof document === 'string' ? document : JSON.stringify({ version: 1, ...document }),
  );

function load(document: object | string, environment: Record<string, string> = {}) {
  return validated({ bytes: bytesOf(document), etag: undefined }, environment).loaded;
}

function problemsOf(document: object | string, environment: Record<string, string> = {}) {
  try {
    load(document, environment);
  } catch (error) {
    if (error instanceof ConfigProblems) return error.problems;
    throw error;
  }
  return [];
}

const withSettings = (settings: object) => ({ ...DOCUMENT, ...settings });

describe('a configuration document', () => {
  it('is enough without any variable', () => {
    const { config, warnings } = load(DOCUMENT);
    expect(warnings).toEqual([]);
    expect(config.secrets.root).toBe(DOCUMENT.jwt_secret);
    expect(config.upstream.providers[0]).toMatchObject({ slug: 'corp-one', clientId: 'client' });
  });

  it('wins over the environment, which wins over the defaults', () => {
    const environment = { SVC_RP_NAME: 'variable', SVC_ORG_NAME: 'organization' };
    const { config } = load(withSettings({ rp_name: 'document' }), environment);
    expect(config.relyingParty.name).toBe('document');
    expect(config.relyingParty.organizationName).toBe('organization');
    expect(config.session.hours).toBe(8);
  });

  it('has lists as arrays, numbers and flags as JSON has them, and each as text too', () => {
    const typed = load(
      withSettings({
        allowed_domains: ['example.com', 'Example.org'],
        session_hours: 4,
        ssh_require_sk: true,
        mtls_client_ca_certs: [tls.ca, other.ca],
        base_url: 'https://login.example.com',
        tls: { cert: tls.cert, key: tls.key },
        rust_log: 'info,http=off',
        otel_service_name: 'another',
        otel_exporter_otlp_endpoint: 'http://collector.example:4318',
      }),
    ).config;
    expect([...(typed.enrollment.allowedDomains ?? [])]).toEqual(['example.com', 'example.org']);
    expect(typed.session.hours).toBe(4);
    expect(typed.ssh.requireSecurityKey).toBe(true);
    expect(typed.http.mtls.clientCaCerts).toHaveLength(2);
    expect(typed.http.tls).toEqual({ cert: tls.cert, key: tls.key });
    expect(typed.log.filter).toBe('info,http=off');
    expect(typed.tracing?.serviceName).toBe('another');
    const texts = { allowed_domains: 'example.com', session_hours: '4', ssh_require_sk: 'true' };
    expect(load(withSettings(texts)).config.session.hours).toBe(4);
  });

  it('has SAML providers beside the others', () => {
    const saml = {
      id: 'corp-saml',
      type: 'saml',
      metadata_url: 'https://idp.example.org/metadata',
      sp_entity_id: 'https://login.example.com',
      email_attribute: 'mail',
      domain_attribute: 'domain',
    };
    const { config, warnings } = load(withSettings({ idps: [...DOCUMENT.idps, saml] }));
    expect(warnings).toEqual([]);
    expect(config.upstream.providers[1]).toMatchObject({
      slug: 'corp-saml',
      type: 'saml',
      metadataUrl: saml.metadata_url,
      domainAttribute: 'domain',
    });
    const plain = withSettings({ idps: [{ ...saml, metadata_url: 'http://idp.example.org/' }] });
    expect(problemsOf(plain)[0]).toMatch(/^object store: idps\[0\]\.metadata_url: must be https/);
  });

  it('replaces the providers of the environment as a whole', () => {
    const environment = {
      SVC_IDPS: 'corp-one,old',
      SVC_IDP_CORP_ONE_NAME: 'a name that must not stay',
      SVC_IDP_OLD_TYPE: 'oidc',
    };
    const { config, warnings } = load(DOCUMENT, environment);
    expect(config.upstream.providers.map(({ slug, name }) => [slug, name])).toEqual([
      ['corp-one', 'corp-one'],
    ]);
    expect(warnings).toEqual([]);
  });

  it.each([
    ['nothing', '', 'is not JSON'],
    ['half of a document', '{"version": 1, "jwt_secret": "planted-value', 'is not JSON'],
    ['a million brackets', '['.repeat(1_000_000), 'is not JSON'],
    ['an array', '[1]', 'must be a JSON object'],
    ['null', 'null', 'must be a JSON object'],
    ['no version', '{}', 'must have "version": 1'],
    ['version 2', '{"version": 2}', 'must have "version": 1'],
    ['the version as text', '{"version": "1"}', 'must have "version": 1'],
    [
      'a key twice',
      '{"version": 1, "jwt_secret": "a", "jwt_secret": "planted-value"}',
      'has an object with the same key twice',
    ],
    [
      'a key twice, once with an escape',
      '{"version": 1, "tls": {"key": "a", "\\u006bey": "b"}}',
      'has an object with the same key twice',
    ],
    [
      'deep nesting',
      `{"version": 1, "x": ${'['.repeat(9)}${']'.repeat(9)}}`,
      'is nested too deeply',
    ],
  ])('with %s is refused, and quoted nowhere', (_what, text, says) => {
    expect(problemsOf(text)).toEqual([`SVC_S3_CONFIG_KEY: the document ${says}`]);
  });

  it('is refused in another encoding than UTF-8, and may begin with a byte order mark', () => {
    const text = JSON.stringify({ version: 1, ...DOCUMENT });
    const utf16 = Buffer.from(text, 'utf16le');
    expect(() =>
      validated({ bytes: Buffer.concat([Buffer.from([0xff]), utf16]), etag: '1' }, {}),
    ).toThrow('must be UTF-8');
    expect(load(`\ufeff${text}`).config.secrets.root).toBe(DOCUMENT.jwt_secret);
  });

  it.each([
    'certification_test_token',
    'certification_host',
    'database_url',
    'data_dir',
    's3_config_bucket',
    's3_config_key',
    's3_config_region',
    's3_config_endpoint',
    's3_config_poll_interval',
  ])('may not set %s', (key) => {
    expect(problemsOf(withSettings({ [key]: 'planted-value' }))).toEqual([
      `SVC_S3_CONFIG_KEY: the document may not set ${key}; set its variable`,
    ]);
  });

  it('of 1 MiB of unknown keys names the first ones, and is read without delay', () => {
    const unknown = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`k${i}`, '']));
    const before = process.cpuUsage();
    const { warnings } = load(withSettings(unknown));
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(1000);
    expect(warnings).toHaveLength(21);
    expect(warnings.at(-1)).toBe(
      'object store: has further keys that are not keys of the document',
    );
  });

  it('has unknown keys as warnings that name them, also those of a prototype', () => {
    const text = `{"version": 1, "alowed_domains": ["x"], "__proto__": {"jwt_secret": "x"}, "constructor": 1, "a\\nb": 1,
      "SVC_RP_NAME": "x", ${JSON.stringify(DOCUMENT).slice(1)}`;
    const { warnings, config } = load(text);
    expect(warnings).toEqual([
      'object store: alowed_domains: is not a key of the document; did you mean allowed_domains?',
      'object store: __proto__: is not a key of the document',
      'object store: constructor: is not a key of the document',
      'object store: a b: is not a key of the document',
      'object store: SVC_RP_NAME: is not a key of the document',
    ]);
    expect(config.secrets.root).toBe(DOCUMENT.jwt_secret);
    const inner = load(
      withSettings({ idps: [{ ...DOCUMENT.idps[0], client_secrets: 'x', ['__proto__x']: 1 }] }),
    );
    expect(inner.warnings[0]).toBe(
      'object store: idps[0].client_secrets: is not a key of the document; did you mean client_secret?',
    );
  });

  it.each([
    [{ jwt_secret: 'planted' }, 'object store: jwt_secret: must have at least 32 characters'],
    [{ jwt_secret: ['planted'] }, 'object store: jwt_secret: must be a string'],
    [{ jwt_secret: null }, 'object store: jwt_secret: must be a string'],
    [{ session_hours: 1.5 }, 'object store: session_hours: must be a whole number'],
    [{ session_hours: 13 }, 'object store: session_hours: must be between 1 and 12'],
    [{ ssh_require_sk: 1 }, 'object store: ssh_require_sk: must be true or false'],
    [{ allowed_domains: [] }, 'object store: allowed_domains: must have an item, or be left out'],
    [{ allowed_domains: ['a,b'] }, 'object store: allowed_domains: has an item with a comma'],
    [{ allowed_domains: [' '] }, 'object store: allowed_domains: has an empty item'],
    [{ base_url: 'planted' }, 'object store: base_url: must be an http or https URL'],
    [{ tls: tls.cert }, 'object store: tls: must be an object of cert and key'],
    [
      { base_url: 'https://login.example.com', tls: { cert: tls.cert } },
      'object store: tls.key: is required',
    ],
    [
      { base_url: 'https://login.example.com', tls: { cert: tls.cert, key: other.key } },
      'object store: tls.key: is not the key of the first certificate in tls.cert',
    ],
    [
      { base_url: 'https://login.example.com', tls: { cert: '/etc/tls.pem', key: tls.key } },
      'object store: tls.cert: must be PEM or base64 of PEM; the document names no files',
    ],
    [
      { extra_ca_certs: '/etc/hostname' },
      'object store: extra_ca_certs: must be PEM or base64 of PEM; the document names no files',
    ],
    [{ idps: [] }, 'object store: idps: must be an array of one object or more'],
    [{ idps: ['corp'] }, 'object store: idps[0]: must be an object'],
    [{ idps: [{ type: 'oidc' }] }, 'object store: idps[0].id: is required'],
    [{ idps: [{ id: 'a,b' }] }, 'object store: idps[0].id: is malformed'],
    [
      { idps: [DOCUMENT.idps[0], { ...DOCUMENT.idps[0], id: 'two', client_secret: '' }] },
      'object store: idps[1].client_secret: is required',
    ],
    [{ idps: [DOCUMENT.idps[0], DOCUMENT.idps[0]] }, 'object store: idps: names a slug twice'],
  ])('with %j is refused as a variable would be: %s', (settings, line) => {
    const problems = problemsOf(withSettings(settings));
    expect(problems).toContain(line);
    expect(problems.join('\n')).not.toContain('planted');
  });

  it('reports its problems and those of the environment together, each with its own name', () => {
    expect(
      problemsOf(
        { session_hours: 13, data_dir: 'x', jwt_secret: 'short' },
        { SVC_IDPS: '', SVC_MTLS_PORT: '0' },
      ),
    ).toEqual([
      'SVC_S3_CONFIG_KEY: the document may not set data_dir; set its variable',
      'SVC_MTLS_PORT: must be between 1 and 65535',
      'object store: jwt_secret: must have at least 32 characters',
      'object store: session_hours: must be between 1 and 12',
      'SVC_IDPS: at least one upstream identity provider is required',
    ]);
  });

  it('knows the form of each variable that is no plain text', () => {
    const forms = [...VARIABLES.values()].map(({ name, shape }) => [name, jsonFormOf(shape)]);
    const textual = forms.filter(([, form]) => form === undefined).map(([name]) => name);
    // If this fails for a variable with several values, a number or a flag, add its shape to
    // JSON_FORMS.
    for (const name of textual) {
      expect(name).toMatch(
        /URL|_ID$|_NAME$|_HOST$|_ADDR$|SECRET|TOKEN|_KEY|TLS_|DATA_DIR|AUDIENCE|S3_|FORMAT|FAILOVER|POOLER|RELEASE_DIR|RUST_LOG|OTEL|AWS_|PRINCIPALS_DOMAIN|SECURITY_CONTACT|SEAL_BUCKET/,
      );
    }
    expect(Object.fromEntries(forms)).toMatchObject({
      SVC_ALLOWED_DOMAINS: 'list',
      SVC_CORS_ORIGINS: 'list',
      SVC_TRUSTED_PROXIES: 'list',
      SVC_ALLOWED_AAGUIDS: 'list',
      SVC_SSH_PRINCIPALS: 'list',
      SVC_OIDC_SIGNING_KEY: 'pem',
      SVC_EXTRA_CA_CERTS: 'pem',
      SVC_MTLS_PORT: 'number',
      SVC_SSH_REQUIRE_SK: 'flag',
    });
  });
});
