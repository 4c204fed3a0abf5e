import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { readFileSync, readdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  checkManifests,
  helm,
  manifestsOf,
  only,
  render,
  template,
  type Manifest,
} from '../support/helm.js';
import { requires } from '../support/programs.js';

const ROOT = resolve(import.meta.dirname, '../..');
const CHART = join(ROOT, 'helm');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** The kinds of Kubernetes objects that the chart makes with every value file. */
const ALWAYS = ['Deployment', 'Job', 'Pod', 'PodDisruptionBudget', 'Service'];
const KINDS: Readonly<Record<string, readonly string[]>> = {
  minimal: ['ServiceAccount'],
  tls: ['ServiceAccount', 'ServiceMonitor'],
  ingress: [
    'HorizontalPodAutoscaler',
    'Ingress',
    'NetworkPolicy',
    'PrometheusRule',
    'ServiceAccount',
    'ServiceMonitor',
  ],
  gateway: ['HTTPRoute', 'ServiceAccount'],
  patroni: ['HorizontalPodAutoscaler', 'ServiceAccount'],
  everything: [
    'HTTPRoute',
    'HorizontalPodAutoscaler',
    'Ingress',
    'NetworkPolicy',
    'PrometheusRule',
    'ServiceMonitor',
  ],
};

/** Starts a server on a free port of loopback, and returns its address and port. */
async function listen(server: Server): Promise<{ url: string; port: number }> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port };
}

/** Returns the server's container of the Deployment. */
function serverOf(manifests: readonly Manifest[]) {
  return only(manifests, 'Deployment').spec.template.spec.containers[0];
}

/**
 * Makes a stand-in for the Kubernetes API that serves only Secrets. `versions` has the resource
 * version of each Secret, by its name.
 */
function apiServer(versions: Map<string, string>): Server {
  const resources = [{ name: 'secrets', kind: 'Secret', namespaced: true, verbs: ['get'] }];
  return createServer((request, response) => {
    const url = request.url?.split('?')[0];
    const name = /^\/api\/v1\/namespaces\/default\/secrets\/(.*)$/.exec(url ?? '')?.[1];
    const resourceVersion = versions.get(name ?? '');
    const metadata = { name, namespace: 'default', uid: 'a-uid', resourceVersion };
    let answer: object = { kind: 'Status', apiVersion: 'v1', reason: 'NotFound', code: 404 };
    if (url === '/version') answer = { major: '1', minor: '35', gitVersion: 'v1.35.0' };
    else if (url === '/api/v1')
      answer = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'v1', resources };
    else if (resourceVersion !== undefined)
      answer = { kind: 'Secret', apiVersion: 'v1', metadata, data: { SVC_JWT_SECRET: 'aGlkZGVu' } };
    response.statusCode = 'code' in answer ? 404 : 200;
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(answer));
  });
}

requires('helm', 'check-manifests').describe('the Helm chart, as helm renders it', () => {
  it('has a value file for each of six uses', () => {
    const files = readdirSync(join(CHART, 'ci')).map((name) => name.replace('-values.yaml', ''));
    expect(files.toSorted()).toEqual(Object.keys(KINDS).toSorted());
  });

  it.concurrent.each(Object.keys(KINDS))(
    'passes lint and the schemas of Kubernetes with the values %s',
    async (name) => {
      const values = ['--values', join(CHART, `ci/${name}-values.yaml`)];
      const [linted, rendered] = await Promise.all([
        helm(['lint', '--strict', CHART, ...values]),
        helm(['template', 'svc', CHART, ...values]),
      ]);
      expect(linted.stdout + linted.stderr).toContain('1 chart(s) linted, 0 chart(s) failed');
      expect(rendered.stderr).toBe('');
      const kinds = (await manifestsOf(rendered.stdout)).map(({ kind }) => kind);
      expect(kinds.toSorted()).toEqual([...ALWAYS, ...(KINDS[name] ?? [])].toSorted());
    },
  );

  it('is checked by a program that sees a wrong field, kind, variable and volume', async () => {
    const pod = (container: string) =>
      `apiVersion: v1\nkind: Pod\nspec:\n  containers:\n    - { name: a, ${container} }\n`;
    const planted: Readonly<Record<string, string>> = {
      'unknown field "spec.containers[0].imagePolicy"': pod('imagePolicy: Always'),
      'no kind "Ingres" is registered': 'apiVersion: networking.k8s.io/v1\nkind: Ingres\n',
      'variable B appears twice': pod('env: [{ name: B }, { name: B }]'),
      'mounts gone, which is no volume': pod('volumeMounts: [{ name: gone, mountPath: /a }]'),
      'unknown field "spec.endpoints[0].portName"':
        'apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nspec: { endpoints: [{ portName: a }] }\n',
      'unknown field "spec.hosts"':
        'apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nspec: { hosts: [] }\n',
    };
    const outputs = await Promise.all(Object.values(planted).map(checkManifests));
    expect(outputs.map(({ status }) => status)).toEqual(outputs.map(() => 1));
    for (const [index, problem] of Object.keys(planted).entries())
      expect(outputs[index]?.stderr).toContain(problem);
  });

  it('refuses variables and mounts that would change settings, also without its schema', async () => {
    const refused = await template(
      {
        extraEnv: [
          { name: 'SVC_CERTIFICATION_TEST_TOKEN', value: 'a'.repeat(32) },
          { name: 'SVC_BASE_URL', value: 'https://other.example.com' },
          { name: 'AWS_SECRET_ACCESS_KEY', value: 'a' },
          { name: 'NODE_TLS_REJECT_UNAUTHORIZED', value: '0' },
          { name: 'TZ', value: 'Europe/Berlin' },
        ],
        extraVolumes: [{ name: 'tls', emptyDir: {} }],
        extraVolumeMounts: ['/app/.env', '/opt/../app', '/', '//tls/more', '/application'].map(
          (mountPath) => ({ name: 'more', mountPath }),
        ),
      },
      '--skip-schema-validation',
    );
    expect(refused.status).toBe(1);
    const lines = refused.stderr.split('\n').filter((line) => line.startsWith('extra'));
    expect(
      lines.map((line) => /must not set (\S+);|: (\S+) must not|name tls/.exec(line)?.[0]),
    ).toEqual([
      'must not set SVC_CERTIFICATION_TEST_TOKEN;',
      'must not set SVC_BASE_URL;',
      'must not set AWS_SECRET_ACCESS_KEY;',
      'must not set NODE_TLS_REJECT_UNAUTHORIZED;',
      'name tls',
      ': /app/.env must not',
      ': /opt/../app must not',
      ': / must not',
      ': //tls/more must not',
    ]);
    const config = { SVC_CERTIFICATION_TEST_TOKEN: 'a'.repeat(32) };
    expect((await template({ config })).stderr).toContain('SVC_CERTIFICATION_TEST_TOKEN');
  });

  it('lets no source of unchecked names turn certification test mode on, or change Node', async () => {
    const extraEnvFrom = [{ secretRef: { name: 'more' } }];
    const guarded = serverOf(await render({ extraEnvFrom }));
    expect(guarded.envFrom).toEqual(extraEnvFrom);
    for (const name of [
      'SVC_CERTIFICATION_TEST_TOKEN',
      'SVC_CERTIFICATION_HOST',
      'NODE_TLS_REJECT_UNAUTHORIZED',
      'NODE_OPTIONS',
    ]) {
      // In Kubernetes, `env` wins over `envFrom`, and the service takes an empty string as unset.
      // So a Secret that is imported as a whole cannot set this variable.
      expect(guarded.env?.filter((variable) => variable.name === name)).toEqual([
        { name, value: '' },
      ]);
    }
    const extraEnv = [{ name: 'NODE_OPTIONS', value: '--max-semi-space-size=16' }];
    const chosen = serverOf(await render({ extraEnvFrom, extraEnv }));
    expect(chosen.env?.filter(({ name }) => name === 'NODE_OPTIONS')).toEqual(extraEnv);
    expect(serverOf(await render()).env?.map(({ name }) => name)).not.toContain('NODE_OPTIONS');
  });

  it('renders whole numbers of seven digits as they are written', async () => {
    const manifests = await render('config: { SVC_GITHUB_APP_ID: 1234567 }\n');
    expect(serverOf(manifests).env).toContainEqual({ name: 'SVC_GITHUB_APP_ID', value: '1234567' });
    const { stdout } = await template('migration: { deadlineSeconds: 1234567 }\n');
    expect(stdout).toContain('activeDeadlineSeconds: 1234567\n');
  });

  it('requires the URLs of the database also with a configuration document, which a migration does not read', async () => {
    const config = { SVC_S3_CONFIG_BUCKET: 'a-bucket', SVC_DATABASE_POOLER: 'transaction' };
    const { env = [] } = serverOf(await render({ config }));
    const required = env.filter(({ valueFrom }) =>
      /"secretKeyRef":\{(?!.*"optional":true)/.test(JSON.stringify(valueFrom ?? '')),
    );
    expect(required.map(({ name }) => name)).toEqual([
      'SVC_DATABASE_URL',
      'SVC_DATABASE_DIRECT_URL',
    ]);
  });

  it('gives the job of migrations the format and the filter of the log', async () => {
    const manifests = await render({ config: { SVC_LOG_FORMAT: 'json', RUST_LOG: 'warn' } });
    const { env } = only(manifests, 'Job').spec.template.spec.containers[0];
    expect(env).toContainEqual({ name: 'SVC_LOG_FORMAT', value: 'json' });
    expect(env).toContainEqual({ name: 'RUST_LOG', value: 'warn' });
  });

  it('gives the job of migrations the volumes and init containers, and no source of variables', async () => {
    const manifests = await render({
      extraEnv: [{ name: 'TZ', value: 'UTC' }],
      extraEnvFrom: [{ secretRef: { name: 'more' } }],
      extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
      extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/ca' }],
      initContainers: [
        { name: 'proxy', image: 'proxy', securityContext: { readOnlyRootFilesystem: false } },
      ],
    });
    for (const kind of ['Deployment', 'Job']) {
      const pod = only(manifests, kind).spec.template.spec;
      expect(pod.volumes?.map(({ name }) => name)).toEqual(['ca']);
      expect(pod.containers[0].volumeMounts).toEqual([{ name: 'ca', mountPath: '/etc/ca' }]);
      expect(pod.initContainers?.[0]?.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: false,
        capabilities: { drop: ['ALL'] },
      });
    }
    const job = only(manifests, 'Job').spec.template.spec.containers[0];
    expect(job.envFrom).toBeUndefined();
    expect(job.env?.map(({ name }) => name)).toEqual(['SVC_DATABASE_URL', 'SVC_LOG_FORMAT', 'TZ']);
  });

  it('leaves the number of pods to the autoscaler, and spreads them as it is told', async () => {
    const [standard, scaled, refused] = await Promise.all([
      render(),
      render({ autoscaling: { enabled: true }, topologySpreadConstraints: [] }),
      template({
        autoscaling: { enabled: true, maxReplicas: 1 },
        resources: { requests: { cpu: null } },
      }),
    ]);
    const { spec } = only(standard, 'Deployment');
    expect(spec.replicas).toBe(2);
    const matchLabels = {
      'app.kubernetes.io/name': 'svc-server',
      'app.kubernetes.io/instance': 'svc',
    };
    expect(spec.template.spec.topologySpreadConstraints).toEqual([
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels },
        matchLabelKeys: ['pod-template-hash'],
      },
    ]);
    const deployment = only(scaled, 'Deployment').spec;
    expect(deployment).not.toHaveProperty('replicas');
    expect(deployment.template.spec).not.toHaveProperty('topologySpreadConstraints');
    expect(only(scaled, 'HorizontalPodAutoscaler').spec).toMatchObject({
      minReplicas: 2,
      maxReplicas: 6,
    });
    expect(refused.stderr).toMatch(/^autoscaling\.maxReplicas: [^]*\nresources\.requests\.cpu: /m);
  });

  it('adds pods by the delay of the event loop, which OTLP sends with the name of the pod', async () => {
    const config = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.monitoring:4318' };
    const eventLoopDelay = { milliseconds: 50 };
    const [byCpu, byDelay, refused] = await Promise.all([
      render({ config, autoscaling: { enabled: true } }),
      render({ config, autoscaling: { enabled: true, eventLoopDelay } }),
      template({
        autoscaling: { enabled: true, eventLoopDelay: { milliseconds: 10 } },
        extraEnv: [{ name: 'OTEL_RESOURCE_ATTRIBUTES', value: 'team=identity' }],
      }),
    ]);
    const metricsOf = (manifests: readonly Manifest[]) =>
      only(manifests, 'HorizontalPodAutoscaler').spec['metrics'] as { type: string }[];
    expect(metricsOf(byCpu).map(({ type }) => type)).toEqual(['Resource']);
    expect(metricsOf(byDelay)[1]).toEqual({
      type: 'Pods',
      pods: {
        metric: { name: 'nodejs_eventloop_delay_p99_seconds' },
        target: { type: 'AverageValue', averageValue: '50m' },
      },
    });
    const named = (manifests: readonly Manifest[]) =>
      serverOf(manifests).env?.find(({ name }) => name === 'OTEL_RESOURCE_ATTRIBUTES')?.value;
    expect(named(byCpu)).toBeUndefined();
    expect(named(byDelay)).toBe(
      'k8s.namespace.name=$(K8S_NAMESPACE_NAME),k8s.pod.name=$(K8S_POD_NAME)',
    );
    expect(refused.stderr).toMatch(
      /^autoscaling\.eventLoopDelay\.milliseconds: [^]*\nautoscaling\.eventLoopDelay: [^]*\nextraEnv: .*OTEL_RES/m,
    );
  });

  it('asks the services of Patroni for the database, with the Secret of its operator', async () => {
    const database = { primaryService: 'svc-db.databases', credentialsSecret: 'svc-db-app' };
    const pooled = { ...database, poolerService: 'svc-db-pooler.databases', poolerPort: 6432 };
    const config = { SVC_DATABASE_POOLER: 'transaction' };
    const [direct, behindPooler, ...refused] = await Promise.all([
      render({ database }),
      render({ database: pooled, config }),
      template({ database: { primaryService: 'svc-db' } }),
      template({ database: pooled }),
      template({ database, config }),
      template({ database: { poolerService: 'svc-db-pooler' } }),
      template({ database, extraEnv: [{ name: 'PGPASSWORD', value: 'hidden' }] }),
    ]);
    const primary = 'postgres://svc-db.databases:5432/svc?sslmode=verify-full';
    const pooler = 'postgres://svc-db-pooler.databases:6432/svc?sslmode=verify-full';
    for (const kind of ['Deployment', 'Job']) {
      const variables = (manifests: readonly Manifest[]) => {
        const { env = [] } = only(manifests, kind).spec.template.spec.containers[0];
        return new Map(env.map(({ name, value, valueFrom }) => [name, value ?? valueFrom]));
      };
      expect(variables(direct).get('SVC_DATABASE_URL')).toBe(primary);
      expect(variables(direct).has('SVC_DATABASE_DIRECT_URL')).toBe(false);
      expect(variables(direct).get('PGPASSWORD')).toEqual({
        secretKeyRef: { name: 'svc-db-app', key: 'password' },
      });
      expect(variables(behindPooler).get('SVC_DATABASE_URL')).toBe(pooler);
      expect(variables(behindPooler).get('SVC_DATABASE_DIRECT_URL')).toBe(primary);
    }
    expect(refused.map(({ stderr }) => /^(?:database|extraEnv)\S* .*$/m.exec(stderr)?.[0])).toEqual(
      [
        expect.stringMatching(/^database\.credentialsSecret: /),
        expect.stringMatching(/^database\.poolerService: /),
        expect.stringMatching(/^database\.poolerService: /),
        expect.stringMatching(/^database\.primaryService: /),
        expect.stringMatching(/^extraEnv: must not set PGPASSWORD/),
      ],
    );
  });

  it('makes new pods after a Secret has changed, and tells nothing of its content', async () => {
    const versions = new Map([['svc', '41']]);
    const server = apiServer(versions);
    const { url } = await listen(server);
    const checksum = async (values: object = {}, ...options: string[]) => {
      const { metadata } = only(await render(values, ...options), 'Deployment').spec.template;
      return metadata.annotations?.['checksum/secrets'];
    };
    const cluster = ['--namespace', 'default', '--dry-run=server', '--kube-apiserver', url];
    try {
      const before = await checksum({}, ...cluster);
      expect(before).toMatch(/^[0-9a-f]{64}$/);
      expect(await checksum({}, ...cluster)).toBe(before);
      versions.set('svc', '42');
      const after = await checksum({}, ...cluster);
      expect(after).not.toBe(before);
      versions.set('more', '1');
      const extraEnvFrom = [{ secretRef: { name: 'more' } }];
      expect(await checksum({ extraEnvFrom }, ...cluster)).not.toBe(after);
      // The chart looks up the Secret in the cluster only if the operator sets no checksum.
      const [one, two] = [{ secretChecksum: 'one' }, { secretChecksum: 'two' }];
      const chosen = await checksum(one, ...cluster);
      expect(await checksum(one)).toBe(chosen);
      expect(await checksum(two)).not.toBe(chosen);
      expect(await checksum()).toBeUndefined();
    } finally {
      server.close();
    }
  });

  it('asks /health/ready through the Service in `helm test`, by the image alone', async () => {
    const pod = only(await render(), 'Pod').spec;
    const [program, ...args] = pod.containers[0].command ?? [];
    expect([program, args.at(-1)]).toEqual(['node', 'http://svc:80/health/ready']);
    const tls = only(await render({ tls: { secretName: 'tls' } }), 'Pod').spec;
    expect(tls.containers[0].command?.at(-1)).toBe('http://svc:80/health/ready');
    let status = 200;
    const server = createServer((request, response) => {
      response.writeHead(request.url === '/health/ready' ? status : 404).end('{}');
    });
    const { url } = await listen(server);
    const exit = (address: string) =>
      new Promise<number>((done) => {
        const child = execFile(process.execPath, [...args.slice(0, -1), `${address}/health/ready`]);
        child.on('exit', (code) => {
          done(code ?? -1);
        });
      });
    expect(await exit(url)).toBe(0);
    status = 503;
    expect(await exit(url)).toBe(1);
    await new Promise((done) => server.close(done));
    expect(await exit(url)).toBe(1);
  });

  it('asks each pod for its metrics as the job of the alerts, with TLS by the public name', async () => {
    const serviceMonitor = { enabled: true };
    const endpointOf = async (values: object) => {
      const { spec } = only(await render({ serviceMonitor, ...values }), 'ServiceMonitor');
      return (spec['endpoints'] as object[])[0];
    };
    const credentials = { name: 'svc', key: 'SVC_METRICS_BEARER_TOKEN' };
    const relabelings = [{ targetLabel: 'job', replacement: 'svc' }];
    const plain = { port: 'http', path: '/metrics', authorization: { credentials }, relabelings };
    expect(await endpointOf({})).toEqual({ ...plain, interval: '30s' });
    expect(await endpointOf({ tls: { secretName: 'tls' } })).toMatchObject({
      port: 'https',
      scheme: 'https',
      tlsConfig: { serverName: 'login.example.com' },
    });
  });

  it('takes every block of values in the documents', async () => {
    const pages = ['docs/operations.md', 'docs/operations/kubernetes.md'].map(read).join('\n');
    const blocks = [...pages.matchAll(/^```yaml\n([^]*?)^```$/gm)].map(([, block = '']) => block);
    const values = blocks.filter((block) => !/^(?:apiVersion|# Not values of this)/.test(block));
    expect(values.length).toBeGreaterThan(7);
    await Promise.all(values.map((block) => render(block)));
  });

  it('gives the Prometheus Operator the alerts of docs/grafana', async () => {
    const indented = read('docs/grafana/alerts.yaml').replaceAll(/^/gm, '  ');
    const [written] = await manifestsOf(
      `apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nspec:\n${indented}`,
    );
    const ruleOf = async (runbooks: string) =>
      only(await render({ prometheusRule: { enabled: true, runbooks } }), 'PrometheusRule').spec;
    expect(await ruleOf('')).toEqual(written?.spec);
    const text = JSON.stringify(await ruleOf('https://git.example.com/'));
    expect(text.match(/"runbook_url":"https:\/\/git\.example\.com\/docs\//g)).toHaveLength(12);
  });
});

describe('the alerts of the Helm chart', () => {
  it('are those of docs/grafana, byte for byte', () => {
    expect(read('helm/files/alerts.yaml')).toBe(read('docs/grafana/alerts.yaml'));
  });
});
