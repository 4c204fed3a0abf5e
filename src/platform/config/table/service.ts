import { z } from 'zod';
import { shortText, wholeNumber } from '#platform/config/shapes/base-shapes.js';
import { databaseUrl } from '#platform/database/url/database-url.js';
import { certificates, tlsCertificates, tlsKey } from '#platform/config/shapes/key-shapes.js';
import {
  cidrList,
  corsOrigins,
  listenAddress,
  origin,
  replication,
} from '#platform/config/shapes/setting-shapes.js';
import { secret, variable } from './variable.js';

/** The addresses of the service, its name for browsers, and its database. */
export const SERVICE = {
  http: {
    baseUrl: variable('SVC_BASE_URL', origin.default('http://localhost:3000'), {
      meaning:
        'The public origin: https, or http on a loopback host. With TLS the default is `https://{SVC_RP_ID}`.',
    }),
    listen: variable('SVC_LISTEN_ADDR', listenAddress.default({ host: '::', port: 3000 }), {
      meaning: 'The address of the plain HTTP listener. Ignored with TLS, which binds 443 and 80.',
      unset: '`[::]:3000`',
    }),
    tls: {
      cert: variable('SVC_TLS_CERT', tlsCertificates.optional(), {
        meaning:
          'The certificate chain for TLS: PEM, base64 of PEM, or a file. Needs SVC_TLS_KEY. Read again on SIGHUP.',
      }),
      key: secret('SVC_TLS_KEY', tlsKey.optional(), {
        meaning: 'The key of SVC_TLS_CERT, in the same forms.',
      }),
    },
    mtls: {
      port: variable('SVC_MTLS_PORT', wholeNumber(1, 65_535).default(8443), {
        meaning: 'With TLS: the port that requests client certificates.',
      }),
      clientCaCerts: variable('SVC_MTLS_CLIENT_CA_CERTS', certificates.default([]), {
        meaning: 'The authorities of client certificates (`tls_client_auth`): PEM, or a file.',
      }),
    },
    trustedProxies: variable('SVC_TRUSTED_PROXIES', cidrList.default([]), {
      meaning: 'Addresses or CIDR ranges of the proxies whose `X-Forwarded-For` is trusted.',
    }),
    corsOrigins: variable('SVC_CORS_ORIGINS', corsOrigins.default([]), {
      meaning:
        'Other origins whose pages may call the routes of login, enrollment and logout with credentials. `*` is refused.',
    }),
  },
  relyingParty: {
    id: variable('SVC_RP_ID', z.string().toLowerCase().optional(), {
      meaning:
        'The WebAuthn relying party id: that host or a parent domain. **Keys are bound to it: never change it.**',
      unset: 'the host of the base URL',
    }),
    name: variable('SVC_RP_NAME', shortText(64).default('svc'), {
      meaning: 'The name of the relying party, as browsers show it.',
    }),
    organizationName: variable('SVC_ORG_NAME', shortText(64).optional(), {
      meaning: 'The name that the pages show.',
      unset: 'the RP name',
    }),
  },
  database: {
    url: secret('SVC_DATABASE_URL', databaseUrl.optional(), {
      meaning: 'A PostgreSQL of version 15 or newer, `postgres://…`.',
      unset: 'an embedded server in the data directory',
    }),
    dataDir: variable('SVC_DATA_DIR', z.string().default('./data'), {
      meaning: 'The folder of the embedded database and of the CA key.',
    }),
    maxConnections: variable('SVC_DB_MAX_CONNECTIONS', wholeNumber(1, 1000).default(25), {
      meaning:
        'Connections to the database, 1 to 1000: a fifth for searches and lists of organizations, the rest for all other work.',
    }),
    failover: variable('SVC_DATABASE_FAILOVER', replication.optional(), {
      meaning:
        'What a failover of the database ends by itself. `synchronous`: access ends only if a lost write is proved. `asynchronous`: access ends on every new timeline.',
      unset: 'access ends if a lost write is proved, or if no replica can tell',
    }),
  },
};
