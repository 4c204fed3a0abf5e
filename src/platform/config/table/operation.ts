import { z } from 'zod';
import { longText, shortText, wholeNumber } from '#platform/config/shapes/base-shapes.js';
import { rsaPrivateKey } from '#platform/config/shapes/key-shapes.js';
import {
  appName,
  appNumber,
  bearerToken,
  bucket,
  contactUri,
  headerText,
  httpUrl,
  httpsUrl,
  logDirectives,
  otlpProtocol,
  region,
  safeOrigin,
} from '#platform/config/shapes/setting-shapes.js';
import { secret, variable } from './variable.js';

/** The settings of operation: the object store, GitHub, the clean-up, the log and the metrics. */
export const OPERATION = {
  objectStore: {
    bucket: variable('SVC_S3_CONFIG_BUCKET', bucket.optional(), {
      meaning:
        'The bucket of the [configuration document](../operations/object-store.md), whose settings win over the environment.',
      unset: 'no document',
    }),
    key: variable('SVC_S3_CONFIG_KEY', shortText(1024).default('config/svc-server.json'), {
      meaning: 'The key of the document in the bucket.',
    }),
    region: variable('SVC_S3_CONFIG_REGION', region.default('auto'), {
      meaning:
        'The region of the bucket. `auto` takes `AWS_REGION`, or else follows the answer of AWS.',
    }),
    endpoint: variable('SVC_S3_CONFIG_ENDPOINT', httpsUrl.optional(), {
      meaning: 'The address of another S3-compatible store: https, or http on loopback.',
      unset: 'AWS',
    }),
    pollSeconds: variable('SVC_S3_CONFIG_POLL_INTERVAL', wholeNumber(1, 86_400).default(60), {
      meaning: 'Seconds between two looks at the document, 1 to 86400.',
    }),
  },
  github: {
    appId: variable('SVC_GITHUB_APP_ID', appNumber.optional(), {
      meaning: 'The id of the GitHub App. With it, every variable of the App below is required.',
      unset: 'no GitHub tokens',
    }),
    appKey: secret('SVC_GITHUB_APP_KEY', rsaPrivateKey.optional(), {
      meaning: 'The private key of the App: PEM (PKCS#1 or PKCS#8), base64 of PEM, or a file.',
    }),
    appName: variable('SVC_GITHUB_APP_NAME', appName.optional(), {
      meaning: 'The name of the App in its address, `https://github.com/apps/{name}`.',
    }),
    clientId: variable('SVC_GITHUB_APP_CLIENT_ID', headerText.optional(), {
      meaning: 'The client id of the App.',
    }),
    clientSecret: secret('SVC_GITHUB_APP_CLIENT_SECRET', headerText.optional(), {
      meaning: 'A client secret of the App.',
    }),
    webhookSecret: secret('SVC_GITHUB_WEBHOOK_SECRET', longText(8).optional(), {
      meaning: 'The secret that signs the webhooks of the App, 8 characters or more.',
    }),
    apiUrl: variable('SVC_GITHUB_API_URL', httpsUrl.default('https://api.github.com'), {
      meaning:
        'The REST API, also of a GitHub Enterprise Server (`https://github.example.com/api/v3`): https, or http on loopback.',
    }),
    webUrl: variable('SVC_GITHUB_WEB_URL', safeOrigin.optional(), {
      meaning: 'The origin where users authorize the App and Git fetches.',
      unset: '`https://github.com`, or the origin of another API',
    }),
  },
  cleanUp: {
    intervalSeconds: variable('SVC_CLEANUP_INTERVAL', wholeNumber(0, 86_400).default(900), {
      meaning:
        'Seconds between two clean-ups of expired rows, by one replica at a time. 0 turns them off.',
    }),
    retentionDays: {
      auth: variable('SVC_AUTH_EVENTS_RETENTION_DAYS', wholeNumber(0, 36_500).default(90), {
        meaning:
          'Days that audit events of the class `auth` are kept. Administrative events are never deleted.',
      }),
      oauth: variable('SVC_OAUTH_EVENTS_RETENTION_DAYS', wholeNumber(0, 36_500).default(90), {
        meaning: 'Days that audit events of the class `oauth` are kept.',
      }),
    },
  },
  securityContact: variable('SVC_SECURITY_CONTACT', contactUri.optional(), {
    meaning:
      'The address at which vulnerabilities are reported, in `security.txt` (RFC 9116): an https:, mailto: or tel: URI.',
    unset: 'no security.txt',
  }),
  log: {
    format: variable(
      'SVC_LOG_FORMAT',
      z.enum(['text', 'json'], 'must be text or json').default('text'),
      { meaning: 'The format of the log: `text` or `json`.' },
    ),
    filter: variable('RUST_LOG', logDirectives.default('info'), {
      meaning: 'The log filter by level and target: `info,database=warn,http=off`.',
    }),
  },
  metrics: {
    bearerToken: secret('SVC_METRICS_BEARER_TOKEN', bearerToken.optional(), {
      meaning: 'The token that a scraper of the metrics presents.',
      unset: 'no metrics',
    }),
  },
  tracing: {
    endpoint: variable('OTEL_EXPORTER_OTLP_ENDPOINT', httpUrl.optional(), {
      meaning: 'The address of the collector of traces, OTLP over HTTP.',
      unset: 'no tracing',
    }),
    protocol: variable('OTEL_EXPORTER_OTLP_PROTOCOL', otlpProtocol.default('http/protobuf'), {
      meaning: 'The protocol of the collector. Every other value is refused.',
    }),
    serviceName: variable('OTEL_SERVICE_NAME', z.string().default('svc-server'), {
      meaning: 'The name of the service in traces.',
    }),
  },
};
