import '../support/full-scale-only.js';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestApp } from '../support/app.js';
import { freePort } from '../support/free-port.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { findProgram, requires } from '../support/programs.js';
import { PublicName } from '../support/public-name.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const ALERTS = read('docs/grafana/alerts.yaml');

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

const dashboard = JSON.parse(read('docs/grafana/svc-server.json')) as {
  readonly uid: string;
  readonly title: string;
  readonly schemaVersion: number;
  readonly templating: { readonly list: readonly { readonly name: string }[] };
  readonly panels: readonly Panel[];
};
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
);

/**
 * Returns the selectors of a PromQL expression: each metric with its labels. It leaves the label
 * `status` out, because the requests of the test do not cause every status.
 */
function selectorsOf(expression: string): string[] {
  return [...expression.matchAll(/\b(?:http|svc)_[a-z_]+(?:\{[^}]*\})?/g)].map(([selector]) =>
    selector.replaceAll(/,? *status[!=~]+"[^"]*"/g, '').replace('{,', '{'),
  );
}

describe('the dashboard', () => {
  it('is one that Grafana imports: ids, places and variables fit together', () => {
    expect(dashboard).toMatchObject({ uid: 'svc-server', title: 'svc-server' });
    expect(dashboard.schemaVersion).toBeGreaterThan(30);
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const known = new Set([
      '__rate_interval',
      ...dashboard.templating.list.map(({ name }) => name),
    ]);
    const used = [...JSON.stringify(dashboard).matchAll(/\$\{?(\w+)/g)].map(
      ([, name = '']) => name,
    );
    expect(used.filter((name) => !known.has(name))).toEqual([]);
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)} ${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size, 'panels lie over each other').toBe(cells.length);
    expect(dashboard.panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
  });
});

describe('the alerts', () => {
  it('each alert leads to a page and a heading that exist', () => {
    const names = [...ALERTS.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);
    const links = [...ALERTS.matchAll(/runbook_url: (\S+)/g)].map(([, link = '']) => link);
    expect(names.length).toBeGreaterThan(10);
    expect(links).toHaveLength(names.length);
    const dead = links.filter((link) => {
      const [page = '', anchor] = link.split('#');
      if (!existsSync(join(ROOT, page))) return true;
      return anchor !== undefined && !read(page).toLowerCase().includes(`# ${anchor}\n`);
    });
    expect(dead).toEqual([]);
  });

  it('each alert has a test that it fires', () => {
    const tests = globSync('docs/grafana/*.test.yaml', { cwd: ROOT });
    const fired = tests.flatMap((path) => [
      ...read(path).matchAll(/alertname: (\w+)\n\s+exp_alerts:/g),
    ]);
    const names = [...ALERTS.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
    expect(fired.map(([, name]) => name).toSorted()).toEqual(names.toSorted());
  });
});

requires('promtool').describe('the alert on notices, of the guide', () => {
  it('fires if an application of an organization has not heard for longer than 15 minutes', async () => {
    const folder = await makeTemporaryDirectory();
    writeFileSync(join(folder, 'rules.yaml'), guideBlock('monitoring.md', 'otlp-alert'));
    const series = (registered: string, values: string) =>
      `{ series: 'svc_notices_oldest_seconds{kind="back-channel-logout", registered_by="${registered}"}', values: '${values}' }`;
    const alerts = (at: string, fired: string) =>
      `{ eval_time: ${at}, alertname: SvcNoticesWait, exp_alerts: [${fired}] }`;
    const fired =
      '{ exp_labels: { severity: warning, kind: back-channel-logout }, exp_annotations: { summary: A notice (back-channel-logout) waits for 20m 0s } }';
    writeFileSync(
      join(folder, 'test.yaml'),
      `rule_files: [rules.yaml]
tests:
  - interval: 1m
    input_series:
      - ${series('organization', '0x10 1200x20')}
      - ${series('itself', '9000x40')}
    alert_rule_test:
      - ${alerts('10m', '')}
      - ${alerts('30m', fired)}
`,
    );
    const commands = 'promtool check rules rules.yaml && promtool test rules test.yaml';
    expect(await runToSuccess(commands, { cwd: folder })).toContain('SUCCESS');
    await removeDirectory(folder);
  });
});

requires('prometheus', 'promtool', 'curl', 'openssl').describe(
  'a real Prometheus, by the guide',
  () => {
    let name: PublicName;
    let app: TestApp;
    let folder: string;
    let address: string;
    const parts = new AsyncDisposableStack();
    beforeAll(async () => {
      folder = await makeTemporaryDirectory();
      parts.defer(() => removeDirectory(folder));
      const etc = join(folder, 'etc');
      mkdirSync(etc);
      const inFolder = { '/etc/prometheus': etc };
      await runToSuccess(guideBlock('monitoring.md', 'token', inFolder));
      const token = readFileSync(join(etc, 'svc-token'), 'utf8').trim();
      name = await PublicName.open();
      parts.defer(() => name.close());
      app = await name.startApp({ environment: { SVC_METRICS_BEARER_TOKEN: token } });
      parts.defer(() => app.close());
      // The port that Prometheus scrapes is replaced, because the service of the test has a random
      // one.
      const scrape = guideBlock('monitoring.md', 'scrape', {
        ...inFolder,
        '127.0.0.1:3000': name.listener,
      });
      const file = join(etc, 'prometheus.yml');
      writeFileSync(
        file,
        `global: { scrape_interval: 250ms, evaluation_interval: 250ms }\n${scrape}`,
      );
      cpSync(join(ROOT, 'docs/grafana'), join(folder, 'docs/grafana'), { recursive: true });
      await runToSuccess(guideBlock('monitoring.md', 'rules', inFolder), { cwd: folder });
      address = `127.0.0.1:${await freePort()}`;
      const child = spawn(
        findProgram('prometheus') ?? '',
        [
          `--config.file=${file}`,
          `--storage.tsdb.path=${folder}/data`,
          `--web.listen-address=${address}`,
        ],
        { stdio: 'ignore' },
      );
      const ended = once(child, 'close');
      parts.defer(async () => {
        child.kill('SIGTERM');
        await ended;
      });
      await makeTraffic();
      // Waits for more than four scrapes, because a rate needs several values.
      while ((await query('count(count_over_time(up{job="svc"}[5m]) > 4)')).join() !== '1')
        await delay(50);
    });
    afterAll(() => parts.disposeAsync());

    /**
     * Runs a PromQL query.
     *
     * @returns the values, or the text of an error as the only element
     */
    async function query(expression: string): Promise<string[]> {
      const search = new URLSearchParams({ query: expression }).toString();
      const response = await fetch(`http://${address}/api/v1/query?${search}`).catch(
        () => undefined,
      );
      if (!response) return ['no answer'];
      const body = (await response.json()) as {
        readonly error?: string;
        readonly data?: {
          readonly result: readonly { readonly value: readonly [number, string] }[];
        };
      };
      return body.error === undefined
        ? (body.data?.result ?? []).map(({ value }) => value[1])
        : [body.error];
    }

    /**
     * Sends requests that create every series of the dashboard: sign-ins, logins, credentials,
     * refusals.
     */
    async function makeTraffic(): Promise<void> {
      const { client, key } = await app.enrolled('ada@monitoring.example');
      await client.logIn(key);
      // A login that fails, because the key signs the challenge of another login.
      const [first, second] = [
        await client.post('/login/webauthn/start', {}),
        await client.post('/login/webauthn/start', {}),
      ];
      const credential = key.get(first.json.publicKey, app.baseUrl);
      await client.post('/login/webauthn/complete', { state: second.json.state, credential });
      await client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
      await client.get('/oauth/callback?state=none&code=none');
      await client.get('/health/ready');
      await app.client().get('/scim/v2/Users', { headers: { authorization: 'Bearer wrong' } });
      await app.client().post('/scim/v2/Users', {}, { headers: { authorization: 'Bearer wrong' } });
      const flood = app.client();
      await Promise.all(
        Array.from({ length: 12 }, () =>
          flood.post('/oauth/token', 'a=b', {
            headers: { 'content-type': 'application/x-www-form-urlencoded' },
          }),
        ),
      );
    }

    it('the token is a secret file, and the look at the metrics shows the counters', async () => {
      expect(statSync(join(folder, 'etc/svc-token')).mode & 0o777).toBe(0o600);
      const printed = await runToSuccess(
        guideBlock('monitoring.md', 'look', {
          '/etc/prometheus': join(folder, 'etc'),
        }),
        { env: name.env },
      );
      expect(printed).toContain('svc_auth_events_total{event_type="enrollment"} 1');
      expect(printed).toContain('svc_credential_issuance_total{type="ssh"} 1');
    });

    it('every query of the dashboard finds series of the server', async () => {
      expect(queries.length).toBeGreaterThan(12);
      for (const { title, expr } of queries) {
        const expression = expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', '.*');
        const values = await query(expression);
        expect(values.length, `${title}: ${expression}`).toBeGreaterThan(0);
        expect(
          values.filter((value) => Number.isNaN(Number(value))),
          title,
        ).toEqual([]);
        for (const selector of selectorsOf(expression))
          expect(await query(`count(${selector}) > 0`), `${title}: ${selector}`).toHaveLength(1);
      }
      expect(await query('count(no_such_metric)')).toEqual([]);
    });

    it('every series that an alert reads is one that the server exposes', async () => {
      const selectors = selectorsOf(ALERTS);
      expect(selectors.length).toBeGreaterThan(15);
      for (const selector of selectors)
        expect(await query(`count(${selector}) > 0`), selector).toHaveLength(1);
    });

    it('loads the twelve rules, and none of them has an error', async () => {
      const rules = async () => {
        const response = await fetch(`http://${address}/api/v1/rules`);
        const { data } = (await response.json()) as {
          data: { groups: { rules: { name: string; health: string }[] }[] };
        };
        return data.groups.flatMap((group) => group.rules.map(({ health }) => health));
      };
      await expect.poll(rules).toEqual(Array.from({ length: 12 }, () => 'ok'));
    });
  },
);
