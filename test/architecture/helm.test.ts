import { readFileSync, readdirSync } from 'node:fs';
import { extname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROVIDER_VARIABLES } from '../../src/platform/config/table/providers.js';
import { TABLE, VARIABLES } from '../../src/platform/config/table/settings.js';

const folder = new URL('../../helm/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, folder), 'utf8');
const templates = readdirSync(new URL('templates/', folder), { recursive: true, encoding: 'utf8' })
  .filter((name) => extname(name) !== '')
  .map((name) => read(`templates/${name}`));
const chart = [read('values.yaml'), ...templates].join('\n');

/**
 * The variables that the chart takes from a Secret, and never from its values. The service needs
 * those of the first list. Those of the second list are optional.
 */
const REQUIRED_SECRETS = [
  'SVC_DATABASE_URL',
  'SVC_DATABASE_DIRECT_URL', // only with a connection pooler
  'SVC_JWT_SECRET',
  'SVC_SSH_CA_KEY',
];
const OPTIONAL_SECRETS = [
  'SVC_JWT_SECRET_PREVIOUS',
  'SVC_OIDC_SIGNING_KEY',
  'SVC_OIDC_RSA_SIGNING_KEY',
  'SVC_AUDIT_SEAL_KEY',
  'SVC_METRICS_BEARER_TOKEN',
  'SVC_GITHUB_APP_KEY',
  'SVC_GITHUB_APP_CLIENT_SECRET',
  'SVC_GITHUB_WEBHOOK_SECRET',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
];

/** Variables that only the AWS SDK reads, so the service does not declare them. */
const OF_THE_SDK = ['AWS_REGION'];

/** Variables of the service that the chart offers no way to set, each for the reason beside it. */
const NOT_TO_BE_SET = new Set([
  'SVC_TLS_CERT', // the chart sets it to a file of tls.secretName
  'SVC_TLS_KEY',
  'SVC_DATA_DIR', // a pod has no disk
  'SVC_SSH_CA_KEY_PATH',
  'SVC_CERTIFICATION_TEST_TOKEN', // never for production
  'SVC_CERTIFICATION_HOST',
  'OTEL_EXPORTER_OTLP_PROTOCOL', // has only one valid value
]);

function isKnown(name: string): boolean {
  const ofProvider = /^SVC_IDP_(?:<SLUG>)?_?([A-Z_]*)$/.exec(name)?.[1];
  if (ofProvider !== undefined) {
    return ofProvider === '' || PROVIDER_VARIABLES.has(ofProvider);
  }
  return VARIABLES.has(name);
}

/**
 * Returns the parts of a template that depend on a value: the bodies of its `if` and `with`. The
 * pattern assumes that these blocks are not nested.
 */
function blocksOf(template: string, value: string): string {
  const name = value.replaceAll('.', '\\.');
  const block = new RegExp(`\\{\\{- (?:if|with) \\$?${name} \\}\\}([^]*?)\\{\\{- end \\}\\}`, 'g');
  return [...template.matchAll(block)].map(([, body]) => body).join('');
}

describe('the Helm chart', () => {
  it('names only variables that the service reads', () => {
    const named = [...new Set(chart.match(/\bSVC_[A-Z0-9_]+(?:<SLUG>_[A-Z_]+)?/g))];
    expect(named).toContain('SVC_BASE_URL');
    expect(named).toContain('SVC_IDP_<SLUG>_CLIENT_SECRET');
    // `SVC_PORT` is not a setting. A comment in the chart names it, because Kubernetes would set it
    // by a service link.
    expect(named.filter((name) => name !== 'SVC_PORT' && !isKnown(name))).toEqual([]);
  });

  it('can set every variable that has an effect, and holds no secret in its values', () => {
    const schema = JSON.parse(read('values.schema.json'));
    const allowed = Object.keys(schema.properties.config.properties);
    const secrets = [...REQUIRED_SECRETS, ...OPTIONAL_SECRETS];
    const settable = [...VARIABLES.keys()].filter(
      (name) => !secrets.includes(name) && !NOT_TO_BE_SET.has(name),
    );
    expect(allowed.toSorted()).toEqual([...settable, ...OF_THE_SDK].toSorted());
    expect(allowed.filter((name) => VARIABLES.get(name)?.isSecret)).toEqual([]);
    expect(schema.properties.config.additionalProperties).toBe(false);
  });

  it('cannot turn certification test mode on, neither by values nor by a Secret', () => {
    const deployment = read('templates/deployment.yaml');
    const { patternProperties } = JSON.parse(read('values.schema.json')).properties.config;
    const [pattern, ...others] = Object.keys(patternProperties);
    expect('SVC_IDP_CORP_CLIENT_ID').toMatch(new RegExp(pattern ?? ''));
    expect('SVC_CERTIFICATION_TEST_TOKEN').not.toMatch(new RegExp(pattern ?? ''));
    expect(others).toEqual([]);
    // Only the server's container imports whole Secrets, and the variables in its own `env` win
    // over theirs.
    expect(templates.filter((template) => /^ +envFrom:/m.test(template))).toEqual([deployment]);
    const named = templates.join('\n').match(/^.*SVC_CERTIFICATION.*$/gm) ?? [];
    expect(named).toHaveLength(1);
    expect(deployment).toMatch(
      /range list "SVC_CERTIFICATION_TEST_TOKEN" "SVC_CERTIFICATION_HOST" .*\n +- name: \{\{ \. \}\}\n +value: ''\n/,
    );
    const helpers = read('templates/_helpers.tpl');
    const refused = /define "svc\.refusedVariables" -\}\}\n(.*)\n/.exec(helpers)?.[1] ?? '';
    for (const name of [...VARIABLES.keys(), ...OPTIONAL_SECRETS, ...OF_THE_SDK]) {
      expect(name).toMatch(new RegExp(refused));
    }
  });

  it('takes every secret from the Secret that the operator created', () => {
    const deployment = read('templates/deployment.yaml');
    expect(deployment.match(/secretKeyRef:/g)).toHaveLength(2);
    expect(chart).not.toMatch(/^kind: Secret$/m);
    const helpers = read('templates/_helpers.tpl');
    for (const name of REQUIRED_SECRETS) expect(helpers).toMatch(new RegExp(`^${name}$`, 'm'));
    const optional = OPTIONAL_SECRETS.map((name) => `"${name}"`).join(' ');
    expect(deployment).toContain(`{{- range compact (list ${optional} `);
    // The service needs no SSH authority key in a Secret if KMS has the key.
    expect(deployment).toContain(
      '(ternary "" "SVC_SSH_CA_KEY" (empty .Values.config.SVC_SSH_CA_KMS_KEY_ID))',
    );
    expect(helpers).toContain(
      '{{- if not .Values.config.SVC_SSH_CA_KMS_KEY_ID }}\nSVC_SSH_CA_KEY\n{{- end }}',
    );
    const withDocument =
      /\{\{- if and \$\.Values\.config\.SVC_S3_CONFIG_BUCKET \(not \(has \. \(list "SVC_DATABASE_URL" "SVC_DATABASE_DIRECT_URL"\)\)\) \}\}\s+optional: true/;
    expect(deployment).toMatch(withDocument);
    expect(deployment.match(/optional: true/g)).toHaveLength(2);
  });

  it('ends TLS with the files of a Secret, on 443 and 80 without a capability', () => {
    const deployment = read('templates/deployment.yaml');
    const withTls = blocksOf(deployment, '.Values.tls.secretName');
    for (const line of [
      'value: /tls/tls.crt',
      'value: /tls/tls.key',
      'mountPath: /tls',
      'containerPort: 443',
      'containerPort: {{ include "svc.mtlsPort" . }}',
      'name: net.ipv4.ip_unprivileged_port_start',
      'secretName: {{ . }}',
    ]) {
      expect(withTls, line).toContain(line);
    }
    // With TLS, the port named `http` redirects to https. It also answers the probes of Kubernetes,
    // in plain HTTP.
    const port = /define "svc\.port" -\}\}\n([^]*?)\n\{\{- define/.exec(
      read('templates/_helpers.tpl'),
    );
    expect(port?.[1]).toMatch(/^\{\{- if \.Values\.tls\.secretName -\}\}80\{\{- else/);
    expect(deployment.match(/^ +port: http$/gm)).toHaveLength(3);
    expect(deployment).not.toContain('scheme:');
    const mtlsDefault = TABLE.http.mtls.port.shape.parse(undefined);
    expect(read('templates/_helpers.tpl')).toContain(`SVC_MTLS_PORT | default ${mtlsDefault}`);
    for (const name of ['service', 'networkpolicy']) {
      const ports = blocksOf(read(`templates/${name}.yaml`), '.Values.tls.secretName');
      expect(ports).toMatch(/ https$/m);
      expect(ports).toMatch(/ mtls$/m);
    }
  });

  it('migrates in a job of its own, which no request reaches, before the pods of a version start', () => {
    const job = read('templates/migration.yaml');
    for (const line of [
      'helm.sh/hook: pre-install,pre-upgrade',
      'activeDeadlineSeconds: {{ int64 .Values.migration.deadlineSeconds }}',
      'command: [node, dist/migrate.js]',
      'list "SVC_DATABASE_POOLER" "SVC_DATABASE_FAILOVER" "SVC_LOG_FORMAT" "RUST_LOG"',
      'automountServiceAccountToken: false',
      'runAsNonRoot: true',
      'readOnlyRootFilesystem: true',
      'allowPrivilegeEscalation: false',
      'drop: [ALL]',
    ]) {
      expect(job, line).toContain(line);
    }
    expect(job).toMatch(/^\{\{- if \.Values\.migration\.enabled -\}\}\n[^]*\n\{\{- end \}\}\n$/);
    expect(job).not.toContain('svc.selectorLabels');
    expect(job).not.toContain('serviceAccountName');
    expect(job.match(/key: SVC_\w+/g)).toEqual([
      'key: SVC_DATABASE_URL',
      'key: SVC_DATABASE_DIRECT_URL',
    ]);
    // The labels of this job differ from those that the Service selects, so that the Service sends
    // no request to its pod.
    expect(job).toContain('app.kubernetes.io/name: {{ .Chart.Name }}-migrate');
  });

  it('gives a pod the time of the job to start, if no job migrates', () => {
    const deployment = read('templates/deployment.yaml');
    expect(deployment).toContain(
      'failureThreshold: {{ if .Values.migration.enabled }}60{{ else }}{{ div .Values.migration.deadlineSeconds 5 }}{{ end }}',
    );
    const { migration } = JSON.parse(read('values.schema.json')).properties;
    expect(migration.properties.deadlineSeconds).toEqual({ type: 'integer', minimum: 300 });
    expect(read('values.yaml')).toMatch(/^migration:\n {2}enabled: true$/m);
  });

  it('gives a pod the time to stop, after the time that proxies take to notice', () => {
    const deployment = read('templates/deployment.yaml');
    const listeners = readFileSync(
      new URL('../../src/listeners.service.ts', import.meta.url),
      'utf8',
    );
    const grace = Number(/terminationGracePeriodSeconds: (\d+)/.exec(deployment)?.[1]);
    const before = Number(/command: \[sleep, '(\d+)'\]/.exec(deployment)?.[1]);
    const exit = Number(/EXIT_MS = ([\d_]+);/.exec(listeners)?.[1]?.replaceAll('_', '')) / 1000;
    expect(grace).toBeGreaterThan(before + exit);
  });

  it('runs as an unprivileged user without unneeded capabilities', () => {
    const deployment = read('templates/deployment.yaml');
    for (const line of [
      'runAsNonRoot: true',
      'readOnlyRootFilesystem: true',
      'allowPrivilegeEscalation: false',
      'drop: [ALL]',
      'automountServiceAccountToken: false',
    ]) {
      expect(deployment).toContain(line);
    }
  });

  it('probes paths that exist', () => {
    const paths = [...read('templates/deployment.yaml').matchAll(/path: (\S+)/g)].map(
      ([, path]) => path,
    );
    expect(new Set(paths)).toEqual(new Set(['/health', '/health/ready']));
    const controller = readFileSync(
      new URL('../../src/features/health/health.controller.ts', import.meta.url),
      'utf8',
    );
    expect(controller).toContain("@Controller('health')");
    expect(controller).toContain("@Get('ready')");
  });
});
