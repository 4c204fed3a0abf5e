import { z } from 'zod';
import { databaseUrl } from '#platform/database/url/database-url.js';
import * as s from './shapes.js';
import { kmsKey, rowsOf, secret, variable, type Variable } from './variable.js';

/**
 * Every variable of the service, apart from those of identity providers, nested as the
 * configuration is. Each has its name, the shape of its value, and its meaning for the reference.
 * If the shape has no default that says what happens without the variable, `whenUnset` says it.
 */
export const TABLE = {
  http: {
    baseUrl: variable('SVC_BASE_URL', s.origin.default('http://localhost:3000')).means(
      'The public origin: https, or http on a loopback host. With TLS the default is `https://{SVC_RP_ID}`.',
    ),
    listen: variable('SVC_LISTEN_ADDR', s.listenAddress.default({ host: '::', port: 3000 }))
      .means('The address of the plain HTTP listener. Ignored with TLS, which binds 443 and 80.')
      .whenUnset('`[::]:3000`'),
    tls: {
      cert: variable('SVC_TLS_CERT', s.tlsCertificates.optional()).means(
        'The certificate chain for TLS: PEM, base64 of PEM, or a file. Needs SVC_TLS_KEY. Read again on SIGHUP.',
      ),
      key: secret('SVC_TLS_KEY', s.tlsKey.optional()).means(
        'The key of SVC_TLS_CERT, in the same forms.',
      ),
    },
    mtls: {
      port: variable('SVC_MTLS_PORT', s.wholeNumber(1, 65_535).default(8443)).means(
        'With TLS: the port that requests client certificates.',
      ),
      clientCaCerts: variable('SVC_MTLS_CLIENT_CA_CERTS', s.certificates.default([])).means(
        'The authorities of client certificates (`tls_client_auth`): PEM, or a file.',
      ),
    },
    trustedProxies: variable('SVC_TRUSTED_PROXIES', s.cidrList.default([])).means(
      'Addresses or CIDR ranges of the proxies whose `X-Forwarded-For` is trusted.',
    ),
    corsOrigins: variable('SVC_CORS_ORIGINS', s.corsOrigins.default([])).means(
      'Other origins whose pages may call the routes of login, enrollment and logout with credentials. `*` is refused.',
    ),
  },
  relyingParty: {
    id: variable('SVC_RP_ID', z.string().toLowerCase().optional())
      .means(
        'The WebAuthn relying party id: that host or a parent domain. **Keys are bound to it: never change it.**',
      )
      .whenUnset('the host of the base URL'),
    name: variable('SVC_RP_NAME', s.shortText(64).default('svc')).means(
      'The name of the relying party, as browsers show it.',
    ),
    organizationName: variable('SVC_ORG_NAME', s.shortText(64).optional())
      .means('The name that the pages show.')
      .whenUnset('the RP name'),
  },
  workers: variable('SVC_WORKERS', s.wholeNumber(1, 64).default(1)).means('Processes on one port.'),
  database: {
    url: secret('SVC_DATABASE_URL', databaseUrl.optional())
      .means('A PostgreSQL of version 15 or newer, `postgres://…`.')
      .whenUnset('an embedded server in the data directory'),
    pooler: variable(
      'SVC_DATABASE_POOLER',
      s.oneOf('transaction', 'transaction-prepared').optional(),
    )
      .means(
        'A pooler in transaction mode at SVC_DATABASE_URL. `transaction-prepared`: it knows named prepared statements (PgBouncer 1.21 or newer). Needs SVC_DATABASE_DIRECT_URL.',
      )
      .whenUnset('sessions of PostgreSQL itself'),
    directUrl: secret('SVC_DATABASE_DIRECT_URL', databaseUrl.optional()).means(
      'PostgreSQL itself beside a pooler: for migrations, locks of sessions, notifications and costly lists.',
    ),
    dataDir: variable('SVC_DATA_DIR', z.string().default('./data')).means(
      'The folder of the embedded database and of the CA key.',
    ),
    maxConnections: variable('SVC_DB_MAX_CONNECTIONS', s.wholeNumber(1, 1000).default(25)).means(
      'Connections to the database, 1 to 1000: a fifth for searches and lists of organizations, the rest for all other work. Workers share them evenly.',
    ),
    failover: variable('SVC_DATABASE_FAILOVER', s.oneOf('synchronous', 'asynchronous').optional())
      .means(
        'What a failover of the database ends by itself. `synchronous`: access ends only if a lost write is proved. `asynchronous`: access ends on every new timeline.',
      )
      .whenUnset('access ends if a lost write is proved, or if no replica can tell'),
  },
  secrets: {
    root: secret('SVC_JWT_SECRET', s.rootSecret.optional())
      .means('The root secret, 32 characters or more.')
      .whenUnset('**required**, or else SVC_JWT_HMAC_KMS_KEY_ID'),
    previousRoot: secret('SVC_JWT_SECRET_PREVIOUS', s.rootSecret.optional()).means(
      'The previous root secret, which still opens data that was sealed under it.',
    ),
    kmsKeyId: kmsKey('HMAC', 'SVC_JWT_HMAC_KMS_KEY_ID', s.kmsKeyId.optional()).means(
      'A key in AWS KMS (HMAC_256) that makes the root secret at each start. Excludes SVC_JWT_SECRET.',
    ),
    previousKmsKeyId: kmsKey(
      'HMAC',
      'SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS',
      s.kmsKeyId.optional(),
    ).means('The key in AWS KMS that made the previous root secret.'),
  },
  oidc: {
    signingKeys: {
      ec: secret('SVC_OIDC_SIGNING_KEY', s.signingKeys.ec.optional())
        .means(
          'P-256 keys in PEM, or a file: the first one signs tokens (ES256), the others are only published.',
        )
        .whenUnset('a key in the database'),
      rsa: secret('SVC_OIDC_RSA_SIGNING_KEY', s.signingKeys.rsa.optional())
        .means('The same for RS256: RSA keys of 3072 bits or more.')
        .whenUnset('a key in the database'),
    },
    signingKmsKeyIds: {
      ec: kmsKey('ES256', 'SVC_OIDC_SIGNING_KMS_KEY_ID', s.kmsKeyIds.default([])).means(
        'Keys in AWS KMS (ECC_NIST_P256), comma-separated ids or ARNs: the first one signs tokens (ES256), the others are only published.',
      ),
      rsa: kmsKey('RS256', 'SVC_OIDC_RSA_SIGNING_KMS_KEY_ID', s.kmsKeyIds.default([])).means(
        'The same for RS256: keys of the spec RSA_3072 or RSA_4096.',
      ),
    },
    deviceCode: {
      expiresSeconds: variable(
        'SVC_DEVICE_CODE_EXPIRES',
        s.wholeNumber(60, 3600).default(600),
      ).means('Seconds that a device waits for its user, 60 to 3600.'),
      pollIntervalSeconds: variable(
        'SVC_DEVICE_POLL_INTERVAL',
        s.wholeNumber(1, 60).default(5),
      ).means('Seconds between two polls of a device, 1 to 60.'),
    },
  },
  documentKey: {
    kmsKeyIds: kmsKey('data keys', 'SVC_DOCUMENT_KEY_KMS_KEY_ID', s.lastingKmsKeyIds.default([]))
      .means(
        'Keys in AWS KMS, ids or ARNs, comma-separated: the first one wraps the document encryption key, the others still open it. Issuer subdomains need it.',
      )
      .whenUnset('no organization can have an issuer'),
  },
  kms: {
    endpoint: variable('AWS_ENDPOINT_URL_KMS', z.string().optional())
      .means('The address of AWS KMS: https, or http on loopback.')
      .whenUnset('AWS_ENDPOINT_URL, or else the address of AWS'),
    anyEndpoint: variable('AWS_ENDPOINT_URL', z.string().optional())
      .means('The address of the services of AWS that have no variable of their own.')
      .whenUnset('the addresses of AWS'),
  },
  ssh: {
    caKmsKeyIds: kmsKey('Ed25519 or ES256', 'SVC_SSH_CA_KMS_KEY_ID', s.kmsKeyIds.default([]))
      .means(
        'Keys of the SSH authority in AWS KMS, Ed25519 or P-256, comma-separated: the first one signs, the others are only published.',
      )
      .whenUnset('no key in KMS'),
    caKey: secret('SVC_SSH_CA_KEY', z.string().optional()).means(
      'The keys of the SSH authority, Ed25519 or P-256: private ones in OpenSSH format or PKCS#8, not encrypted, public ones as lines or PEM. The first one signs where no key in KMS does, the others are only published.',
    ),
    caKeyPath: variable('SVC_SSH_CA_KEY_PATH', z.string().optional())
      .means('The file of those keys, made at the first start where no key in KMS signs.')
      .whenUnset('`{SVC_DATA_DIR}/ssh_ca_key`'),
    principals: variable('SVC_SSH_PRINCIPALS', s.principalKinds)
      .means('The principals of a certificate: `email`, `username` or both, comma-separated.')
      .whenUnset('`email`'),
    principalsDomain: variable('SVC_SSH_PRINCIPALS_DOMAIN', s.domainName.optional())
      .means(
        'A domain. Only members of the organization that owns it get `username` principals. Required for `username` once there are several organizations.',
      )
      .whenUnset('the only organization'),
    requireSecurityKey: variable('SVC_SSH_REQUIRE_SK', s.flag)
      .means(
        '`true` refuses SSH certificates for every key but one in a security key, proven by its attestation.',
      )
      .whenUnset('`false`'),
  },
  aws: {
    audience: variable('SVC_AWS_AUDIENCE', s.audience.default('sts.amazonaws.com')).means(
      'The `aud` of tokens for AWS, which the identity provider in IAM lists as a client id.',
    ),
  },
  upstream: {
    slugs: variable('SVC_IDPS', s.slugs.default([]))
      .means('Comma-separated slugs of the identity providers, in the order of their buttons.')
      .whenUnset('**required**'),
    extraCaCerts: variable('SVC_EXTRA_CA_CERTS', s.certificates.default([])).means(
      'More certificate authorities for requests to identity providers: PEM, or a file.',
    ),
  },
  enrollment: {
    allowedDomains: variable('SVC_ALLOWED_DOMAINS', s.emailDomains.optional())
      .means('The e-mail domains that may enroll.')
      .whenUnset('any'),
    bootstrapAdmins: variable('SVC_BOOTSTRAP_ADMINS', s.emailAddresses.optional())
      .means(
        'The only e-mail addresses that may become the admin of an organization that has no admin.',
      )
      .whenUnset('the first user of an organization'),
    allowedAaguids: variable('SVC_ALLOWED_AAGUIDS', s.aaguidPolicy.default({ kind: 'any' }))
      .means(
        'The models of security keys that may enroll: `fips-only`, `yubikey-5`, or a comma-separated list of AAGUIDs.',
      )
      .whenUnset('any'),
  },
  certification: {
    token: secret('SVC_CERTIFICATION_TEST_TOKEN', s.longText(32).optional()).means(
      'Turns certification test mode on: no rate limits, and logins without a key. Never set it in production.',
    ),
    host: variable('SVC_CERTIFICATION_HOST', z.string().toLowerCase().optional())
      .means('The public host of certification test mode.')
      .whenUnset('that mode starts on loopback only'),
  },
  session: {
    hours: variable('SVC_SESSION_HOURS', s.wholeNumber(1, 12).default(8)).means(
      'Hours that a session lasts, 1 to 12. A session is never renewed.',
    ),
  },
  objectStore: {
    bucket: variable('SVC_S3_CONFIG_BUCKET', s.bucket.optional())
      .means(
        'The bucket of the [configuration document](../operations/object-store.md), whose settings win over the environment.',
      )
      .whenUnset('no document'),
    key: variable('SVC_S3_CONFIG_KEY', s.shortText(1024).default('config/svc-server.json')).means(
      'The key of the document in the bucket.',
    ),
    region: variable('SVC_S3_CONFIG_REGION', s.region.default('auto')).means(
      'The region of the bucket. `auto` takes `AWS_REGION`, or else follows the answer of AWS.',
    ),
    endpoint: variable('SVC_S3_CONFIG_ENDPOINT', s.httpsUrl.optional())
      .means('The address of another S3-compatible store: https, or http on loopback.')
      .whenUnset('AWS'),
    pollSeconds: variable(
      'SVC_S3_CONFIG_POLL_INTERVAL',
      s.wholeNumber(1, 86_400).default(60),
    ).means('Seconds between two looks at the document, 1 to 86400.'),
  },
  github: {
    appId: variable('SVC_GITHUB_APP_ID', s.appNumber.optional())
      .means('The id of the GitHub App. With it, every variable of the App below is required.')
      .whenUnset('no GitHub tokens'),
    appKey: secret('SVC_GITHUB_APP_KEY', s.rsaPrivateKey.optional()).means(
      'The private key of the App: PEM (PKCS#1 or PKCS#8), base64 of PEM, or a file.',
    ),
    appName: variable('SVC_GITHUB_APP_NAME', s.printable(64).optional()).means(
      'The name of the App in its address, `https://github.com/apps/{name}`.',
    ),
    clientId: variable('SVC_GITHUB_APP_CLIENT_ID', s.headerText.optional()).means(
      'The client id of the App.',
    ),
    clientSecret: secret('SVC_GITHUB_APP_CLIENT_SECRET', s.headerText.optional()).means(
      'A client secret of the App.',
    ),
    webhookSecret: secret('SVC_GITHUB_WEBHOOK_SECRET', s.longText(8).optional()).means(
      'The secret that signs the webhooks of the App, 8 characters or more.',
    ),
    apiUrl: variable('SVC_GITHUB_API_URL', s.httpsUrl.default('https://api.github.com')).means(
      'The REST API, also of a GitHub Enterprise Server (`https://github.example.com/api/v3`): https, or http on loopback.',
    ),
    webUrl: variable('SVC_GITHUB_WEB_URL', s.safeOrigin.optional())
      .means('The origin where users authorize the App and Git fetches.')
      .whenUnset('`https://github.com`, or the origin of another API'),
  },
  access: {
    byGroups: variable('SVC_ACCESS_BY_GROUPS', s.flag.default(true)).means(
      'false: groups of SCIM decide nothing about who reaches what. A change to false ends what people got by a group.',
    ),
  },
  cleanUp: {
    intervalSeconds: variable('SVC_CLEANUP_INTERVAL', s.wholeNumber(0, 86_400).default(900)).means(
      'Seconds between two clean-ups of expired rows, by one replica at a time. 0 turns them off.',
    ),
    retentionDays: {
      auth: variable('SVC_AUTH_EVENTS_RETENTION_DAYS', s.wholeNumber(0, 36_500).default(90)).means(
        'Days that audit events of the class `auth` are kept. Administrative events are never deleted.',
      ),
      oauth: variable(
        'SVC_OAUTH_EVENTS_RETENTION_DAYS',
        s.wholeNumber(0, 36_500).default(90),
      ).means('Days that audit events of the class `oauth` are kept.'),
    },
  },
  auditSeal: {
    key: secret('SVC_AUDIT_SEAL_KEY', s.ed25519PrivateKey.optional())
      .means('The Ed25519 key that signs the checkpoints of the audit log: PEM, or a file.')
      .whenUnset('a key in the database'),
    kmsKeyId: kmsKey('Ed25519', 'SVC_AUDIT_SEAL_KMS_KEY_ID', s.kmsKeyId.optional())
      .means('The same in AWS KMS (ECC_NIST_EDWARDS25519), in place of SVC_AUDIT_SEAL_KEY.')
      .whenUnset('no key in KMS'),
    bucket: variable('SVC_AUDIT_SEAL_BUCKET', s.bucket.optional())
      .means('A bucket with Object Lock, to which each checkpoint of the audit log is written.')
      .whenUnset('checkpoints are in the database and in the log'),
    retentionDays: variable('SVC_AUDIT_SEAL_DAYS', s.wholeNumber(1, 36_500).default(400)).means(
      'Days for which the bucket keeps a checkpoint from being changed or deleted.',
    ),
  },
  commandReleaseDir: variable('SVC_CLIENT_RELEASE_DIR', z.string().optional())
    .means(
      'A folder with the files of the `svc` command of a release, which the service hands out.',
    )
    .whenUnset('the script of this build alone'),
  securityContact: variable('SVC_SECURITY_CONTACT', s.contactUri.optional())
    .means(
      'The address at which vulnerabilities are reported, in `security.txt` (RFC 9116): an https:, mailto: or tel: URI.',
    )
    .whenUnset('no security.txt'),
  log: {
    format: variable('SVC_LOG_FORMAT', s.oneOf('text', 'json').default('text')).means(
      'The format of the log: `text` or `json`.',
    ),
    filter: variable('RUST_LOG', s.logDirectives.default('info')).means(
      'The log filter by level and target: `info,database=warn,http=off`.',
    ),
  },
  metrics: {
    bearerToken: secret('SVC_METRICS_BEARER_TOKEN', s.bearerToken.optional())
      .means('The token that a scraper of the metrics presents.')
      .whenUnset('no metrics'),
  },
  tracing: {
    endpoint: variable('OTEL_EXPORTER_OTLP_ENDPOINT', s.httpUrl.optional())
      .means('The address of the collector of traces and gauges, OTLP over HTTP.')
      .whenUnset('no tracing'),
    protocol: variable(
      'OTEL_EXPORTER_OTLP_PROTOCOL',
      s.otlpProtocol.default('http/protobuf'),
    ).means('The protocol of the collector. Every other value is refused.'),
    serviceName: variable('OTEL_SERVICE_NAME', z.string().default('svc-server')).means(
      'The name of the service in traces.',
    ),
  },
};

/** The rows of the table, by the name of their variable. */
export const VARIABLES: ReadonlyMap<string, Variable> = new Map(
  rowsOf(TABLE).map((row) => [row.name, row]),
);
