import type { PROVIDER_SHAPES, Settings } from './environment.js';

/** The meaning of a variable, for the reference. */
export interface VariableMeaning {
  readonly meaning: string;
  /** The effect of leaving it out, where the schema's own default does not say it. */
  readonly unset?: string;
}

/** The meaning of every variable in the schema of the environment. */
export const MEANINGS: Readonly<Record<keyof Settings, VariableMeaning>> = {
  SVC_BASE_URL: {
    meaning:
      'The public origin: https, or http on a loopback host. With TLS the default is `https://{SVC_RP_ID}`.',
  },
  SVC_RP_ID: {
    meaning:
      'The WebAuthn relying party id: that host or a parent domain. **Keys are bound to it: never change it.**',
    unset: 'the host of the base URL',
  },
  SVC_RP_NAME: { meaning: 'The name of the relying party, as browsers show it.' },
  SVC_ORG_NAME: { meaning: 'The name that the pages show.', unset: 'the RP name' },
  SVC_LISTEN_ADDR: {
    meaning: 'The address of the plain HTTP listener. Ignored with TLS, which binds 443 and 80.',
    unset: '`[::]:3000`',
  },
  SVC_TLS_CERT: {
    meaning:
      'The certificate chain for TLS: PEM, base64 of PEM, or a file. Needs SVC_TLS_KEY. Read again on SIGHUP.',
  },
  SVC_TLS_KEY: { meaning: 'The key of SVC_TLS_CERT, in the same forms.' },
  SVC_MTLS_PORT: { meaning: 'With TLS: the port that requests client certificates.' },
  SVC_MTLS_CLIENT_CA_CERTS: {
    meaning: 'The authorities of client certificates (`tls_client_auth`): PEM, or a file.',
  },
  SVC_TRUSTED_PROXIES: {
    meaning: 'Addresses or CIDR ranges of the proxies whose `X-Forwarded-For` is trusted.',
  },
  SVC_CORS_ORIGINS: {
    meaning:
      'Other origins whose pages may call the routes of login, enrollment and logout with credentials. `*` is refused.',
  },
  SVC_DATABASE_URL: {
    meaning: 'A PostgreSQL of version 15 or newer, `postgres://…`.',
    unset: 'an embedded server in the data directory',
  },
  SVC_DATA_DIR: { meaning: 'The folder of the embedded database and of the CA key.' },
  SVC_DB_MAX_CONNECTIONS: {
    meaning:
      'Connections to the database, 1 to 1000: a fifth for searches and lists of organizations, the rest for all other work.',
  },
  SVC_DATABASE_FAILOVER: {
    meaning:
      'What a failover of the database ends by itself. `synchronous`: access ends only if a lost write is proved. `asynchronous`: access ends on every new timeline.',
    unset: 'access ends if a lost write is proved, or if no replica can tell',
  },
  SVC_JWT_SECRET: {
    meaning: 'The root secret, 32 characters or more.',
    unset: '**required**, or else SVC_JWT_HMAC_KMS_KEY_ID',
  },
  SVC_JWT_SECRET_PREVIOUS: {
    meaning: 'The previous root secret, which still opens data that was sealed under it.',
  },
  SVC_JWT_HMAC_KMS_KEY_ID: {
    meaning:
      'A key in AWS KMS (HMAC_256) that makes the root secret at each start. Excludes SVC_JWT_SECRET.',
  },
  SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS: {
    meaning: 'The key in AWS KMS that made the previous root secret.',
  },
  SVC_OIDC_SIGNING_KEY: {
    meaning:
      'P-256 keys in PEM, or a file: the first one signs tokens (ES256), the others are only published.',
    unset: 'a key in the database',
  },
  SVC_OIDC_RSA_SIGNING_KEY: {
    meaning: 'The same for RS256: RSA keys of 3072 bits or more.',
    unset: 'a key in the database',
  },
  SVC_OIDC_SIGNING_KMS_KEY_ID: {
    meaning:
      'Keys in AWS KMS (ECC_NIST_P256), comma-separated ids or ARNs: the first one signs tokens (ES256), the others are only published.',
  },
  SVC_OIDC_RSA_SIGNING_KMS_KEY_ID: {
    meaning: 'The same for RS256: keys of the spec RSA_3072 or RSA_4096.',
  },
  SVC_DOCUMENT_KEY_KMS_KEY_ID: {
    meaning:
      'Keys in AWS KMS, ids or ARNs, comma-separated: the first one wraps the document encryption key, the others still open it. Issuer subdomains need it.',
    unset: 'no organization can have an issuer',
  },
  AWS_ENDPOINT_URL_KMS: {
    meaning: 'The address of AWS KMS: https, or http on loopback.',
    unset: 'AWS_ENDPOINT_URL, or else the address of AWS',
  },
  AWS_ENDPOINT_URL: {
    meaning: 'The address of the services of AWS that have no variable of their own.',
    unset: 'the addresses of AWS',
  },
  SVC_DEVICE_CODE_EXPIRES: {
    meaning: 'Seconds that a device waits for its user, 60 to 3600.',
  },
  SVC_DEVICE_POLL_INTERVAL: { meaning: 'Seconds between two polls of a device, 1 to 60.' },
  SVC_SSH_CA_KMS_KEY_ID: {
    meaning:
      'Keys of the SSH authority in AWS KMS, Ed25519 or P-256, comma-separated: the first one signs, the others are only published.',
    unset: 'no key in KMS',
  },
  SVC_SSH_CA_KEY: {
    meaning:
      'The keys of the SSH authority, Ed25519 or P-256: private ones in OpenSSH format or PKCS#8, not encrypted, public ones as lines or PEM. The first one signs where no key in KMS does, the others are only published.',
  },
  SVC_SSH_CA_KEY_PATH: {
    meaning: 'The file of those keys, made at the first start where no key in KMS signs.',
    unset: '`{SVC_DATA_DIR}/ssh_ca_key`',
  },
  SVC_SSH_PRINCIPALS: {
    meaning: 'The principals of a certificate: `email`, `username` or both, comma-separated.',
    unset: '`email`',
  },
  SVC_SSH_PRINCIPALS_DOMAIN: {
    meaning:
      'A domain. Only members of the organization that owns it get `username` principals. Required for `username` once there are several organizations.',
    unset: 'the only organization',
  },
  SVC_AWS_AUDIENCE: {
    meaning:
      'The `aud` of tokens for AWS, which the identity provider in IAM lists as a client id.',
  },
  SVC_SSH_REQUIRE_SK: {
    meaning:
      '`true` refuses SSH certificates for every key but one in a security key, proven by its attestation.',
    unset: '`false`',
  },
  SVC_IDPS: {
    meaning: 'Comma-separated slugs of the identity providers, in the order of their buttons.',
    unset: '**required**',
  },
  SVC_EXTRA_CA_CERTS: {
    meaning: 'More certificate authorities for requests to identity providers: PEM, or a file.',
  },
  SVC_ALLOWED_DOMAINS: { meaning: 'The e-mail domains that may enroll.', unset: 'any' },
  SVC_BOOTSTRAP_ADMINS: {
    meaning:
      'The only e-mail addresses that may become the admin of an organization that has no admin.',
    unset: 'the first user of an organization',
  },
  SVC_ALLOWED_AAGUIDS: {
    meaning:
      'The models of security keys that may enroll: `fips-only`, `yubikey-5`, or a comma-separated list of AAGUIDs.',
    unset: 'any',
  },
  SVC_CERTIFICATION_TEST_TOKEN: {
    meaning:
      'Turns certification test mode on: no rate limits, and logins without a key. Never set it in production.',
  },
  SVC_CERTIFICATION_HOST: {
    meaning: 'The public host of certification test mode.',
    unset: 'that mode starts on loopback only',
  },
  SVC_SESSION_HOURS: {
    meaning: 'Hours that a session lasts, 1 to 12. A session is never renewed.',
  },
  SVC_GITHUB_APP_ID: {
    meaning: 'The id of the GitHub App. With it, every variable of the App below is required.',
    unset: 'no GitHub tokens',
  },
  SVC_GITHUB_APP_KEY: {
    meaning: 'The private key of the App: PEM (PKCS#1 or PKCS#8), base64 of PEM, or a file.',
  },
  SVC_GITHUB_APP_NAME: {
    meaning: 'The name of the App in its address, `https://github.com/apps/{name}`.',
  },
  SVC_GITHUB_APP_CLIENT_ID: { meaning: 'The client id of the App.' },
  SVC_GITHUB_APP_CLIENT_SECRET: { meaning: 'A client secret of the App.' },
  SVC_GITHUB_WEBHOOK_SECRET: {
    meaning: 'The secret that signs the webhooks of the App, 8 characters or more.',
  },
  SVC_GITHUB_API_URL: {
    meaning:
      'The REST API, also of a GitHub Enterprise Server (`https://github.example.com/api/v3`): https, or http on loopback.',
  },
  SVC_GITHUB_WEB_URL: {
    meaning: 'The origin where users authorize the App and Git fetches.',
    unset: '`https://github.com`, or the origin of another API',
  },
  SVC_S3_CONFIG_BUCKET: {
    meaning:
      'The bucket of the [configuration document](../operations/object-store.md), whose settings win over the environment.',
    unset: 'no document',
  },
  SVC_S3_CONFIG_KEY: { meaning: 'The key of the document in the bucket.' },
  SVC_S3_CONFIG_REGION: {
    meaning:
      'The region of the bucket. `auto` takes `AWS_REGION`, or else follows the answer of AWS.',
  },
  SVC_S3_CONFIG_ENDPOINT: {
    meaning: 'The address of another S3-compatible store: https, or http on loopback.',
    unset: 'AWS',
  },
  SVC_S3_CONFIG_POLL_INTERVAL: {
    meaning: 'Seconds between two looks at the document, 1 to 86400.',
  },
  SVC_CLEANUP_INTERVAL: {
    meaning:
      'Seconds between two clean-ups of expired rows, by one replica at a time. 0 turns them off.',
  },
  SVC_AUTH_EVENTS_RETENTION_DAYS: {
    meaning:
      'Days that audit events of the class `auth` are kept. Administrative events are never deleted.',
  },
  SVC_OAUTH_EVENTS_RETENTION_DAYS: {
    meaning: 'Days that audit events of the class `oauth` are kept.',
  },
  SVC_SECURITY_CONTACT: {
    meaning:
      'The address at which vulnerabilities are reported, in `security.txt` (RFC 9116): an https:, mailto: or tel: URI.',
    unset: 'no security.txt',
  },
  SVC_LOG_FORMAT: { meaning: 'The format of the log: `text` or `json`.' },
  RUST_LOG: { meaning: 'The log filter by level and target: `info,database=warn,http=off`.' },
  SVC_METRICS_BEARER_TOKEN: {
    meaning: 'The token that a scraper of the metrics presents.',
    unset: 'no metrics',
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    meaning: 'The address of the collector of traces, OTLP over HTTP.',
    unset: 'no tracing',
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    meaning: 'The protocol of the collector. Every other value is refused.',
  },
  OTEL_SERVICE_NAME: { meaning: 'The name of the service in traces.' },
};

/** The meaning of the variables of one identity provider. */
export const PROVIDER_MEANINGS: Readonly<Record<keyof typeof PROVIDER_SHAPES, VariableMeaning>> = {
  TYPE: { meaning: 'The protocol of the provider: `oidc` or `saml`.', unset: '**required**' },
  NAME: { meaning: 'The label of its button.', unset: 'the slug' },
  ISSUER: {
    meaning: 'OpenID Connect: its issuer, an https URL (http only on loopback).',
    unset: '**required**',
  },
  CLIENT_ID: {
    meaning: 'OpenID Connect: the client id of this service there.',
    unset: '**required**',
  },
  CLIENT_SECRET: {
    meaning: 'OpenID Connect: the client secret of this service there.',
    unset: '**required**',
  },
  METADATA_URL: {
    meaning: 'SAML: the address of its metadata, an https URL (http only on loopback).',
    unset: '**required**',
  },
  SP_ENTITY_ID: {
    meaning: 'SAML: the entity id of this service there, a URI.',
    unset: '`{SVC_BASE_URL}/saml/metadata`',
  },
  EMAIL_ATTRIBUTE: {
    meaning: 'SAML: the name of the attribute with the e-mail address of the user.',
    unset: 'the NameID, in the format `emailAddress`',
  },
  DOMAIN_ATTRIBUTE: {
    meaning:
      'SAML: the name of the attribute with the domain of the organization. It must be the domain of the e-mail address.',
    unset: 'the domain of the e-mail address',
  },
  DOMAINS: {
    meaning:
      'The only domains that the provider may vouch for, comma-separated; `*.corp.example` has every subdomain. Set it for each provider once there are several.',
    unset: 'every domain',
  },
};
