import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startSts, type RunningSts } from '@svc/stand-ins/sts';
import type { EnrolledUser, TestApp } from '../support/app.js';
import { AWS_COMMANDS } from '../support/aws-command.js';
import { newAddress } from '../support/client.js';
import { assigned } from '../support/domains.js';
import { freePort } from '../support/free-port.js';
import '../support/full-scale-only.js';
import { GUIDES } from '../support/guide.js';
import { HOST_PROGRAMS, JoiningHost } from '../support/joining-host.js';
import { startKubernetesApi, type KubernetesApi } from '../support/kubernetes-api.js';
import { newKubectl, oldKubectl } from '../support/kubectl.js';
import { Laptop } from '../support/laptop.js';
import { authorize } from '../support/oauth-flow.js';
import { findProgram, requires } from '../support/programs.js';
import { PUBLIC_URL, PublicName } from '../support/public-name.js';
import { rows } from '../support/rows.js';
import { runSshd, SSHD_PROGRAMS, type Sshd } from '../support/sshd.js';
import { runProgram } from '../support/svc-command.js';
import { addTarget } from '../support/targets.js';
import { removeDirectory } from '../support/temporary-directory.js';

const ENGINEER = 'ada@acme.example';
const ROLE = 'arn:aws:iam::123456789012:role/engineer';
const CLUSTER = 'https://prod.k8s.acme.example';
/**
 * The file with the recording that the guide shows. The test replaces it if `SVC_SCREENSHOTS` is
 * set.
 */
const FILM = join(GUIDES, 'screenshots/day-one.txt');

const kubectl = newKubectl() ?? oldKubectl();
const [aws] = AWS_COMMANDS.values();
const needs = [...SSHD_PROGRAMS, ...HOST_PROGRAMS, 'script'];
if (!kubectl) needs.push('a kubectl that works');
if (aws === undefined) needs.push('an aws command that works');

requires(...needs).describe('day one of an engineer', () => {
  let name: PublicName;
  let endFetches: () => void;
  let app: TestApp;
  let ada: EnrolledUser;
  let sshd: Sshd;
  let sts: RunningSts;
  let api: KubernetesApi;
  let laptop: Laptop;
  const film: string[] = [];
  const login = userInfo().username;

  /**
   * Lists hosts, a role and a cluster as targets of the organization. The engineer knows none of
   * them.
   */
  async function listTargets(): Promise<void> {
    const { dataSource } = app;
    await addTarget(dataSource, ENGINEER, { name: 'prod', hosts: ['127.0.0.1'], logins: [login] });
    await addTarget(dataSource, ENGINEER, {
      name: 'engineer',
      roleArn: ROLE,
      region: 'eu-central-1',
    });
    await assigned(app, ENGINEER, 'k8s.acme.example');
    const cluster = { name: 'prod', type: 'kubernetes', resource: CLUSTER };
    const options = { address: newAddress() };
    const made = await ada.client.post('/api/v1/applications', cluster, options);
    if (made.status !== 201) throw new Error(made.text);
  }

  /** Starts the sshd of a host that has joined the service with the group `prod`. */
  async function joinedHost(organizationId: string): Promise<Sshd> {
    const host = new JoiningHost(await freePort());
    const { text } = await app.client().get('/install-host.sh');
    const joined = ['--login', login, '--organization', organizationId, '--group', 'prod'];
    const args = [...host.paths, '--no-reload', '--schedule', 'none', ...joined];
    const { status, said } = await host.run(text, args, { environment: name.env });
    if (status !== 0) throw new Error(said);
    return runSshd(host);
  }

  /** Installs kubectl and the AWS CLI on the laptop. The kubeconfig has the URL of the cluster. */
  async function furnish(): Promise<void> {
    const system = join(laptop.home, 'system');
    symlinkSync(kubectl?.path ?? '', join(system, 'kubectl'));
    // The CLI must reach the stand-ins for STS and S3, and not AWS.
    const lines = [
      '#!/bin/sh',
      `export PATH="$PATH:${process.env['PATH'] ?? ''}"`,
      `export AWS_ENDPOINT_URL_STS='${sts.url}' AWS_EC2_METADATA_DISABLED=true AWS_PAGER=`,
      `exec '${aws}' --endpoint-url '${sts.url}' "$@"`,
    ];
    writeFileSync(join(system, 'aws'), `${lines.join('\n')}\n`);
    chmodSync(join(system, 'aws'), 0o755);
    const ca = join(laptop.home, 'ca.crt');
    writeFileSync(ca, api.ca);
    mkdirSync(join(laptop.home, '.kube'));
    const args = ['--server', api.url, '--certificate-authority', ca];
    const set = await runProgram(kubectl?.path ?? '', ['config', 'set-cluster', 'prod', ...args], {
      env: { HOME: laptop.home, PATH: process.env['PATH'] ?? '' },
    });
    if (set.status !== 0) throw new Error(set.stderr);
  }

  beforeAll(async () => {
    name = await PublicName.open();
    endFetches = name.answerFetches(); // for STS and the cluster, which read the service's keys
    app = await name.startApp();
    ada = await app.enrolled(ENGINEER);
    await listTargets();
    const [organization] = await rows<{ id: string }>(
      app.dataSource,
      'SELECT org_id AS id FROM users WHERE email = $1',
      [ENGINEER],
    );
    sshd = await joinedHost(organization?.id ?? '');
    sts = await startSts({
      provider: { issuer: app.baseUrl, audiences: ['sts.amazonaws.com'] },
      roles: [{ arn: ROLE, trusts: (subject) => subject === ENGINEER }],
      buckets: [],
    });
    api = await startKubernetesApi({
      issuer: app.baseUrl,
      audience: CLUSTER,
      organization: organization?.id ?? '',
    });
    laptop = await Laptop.create(process.execPath, sshd.port, name.env);
    await furnish();
  });
  afterAll(async () => {
    await api.close();
    await sts.close();
    await sshd.stop();
    await app.close();
    endFetches();
    await name.close();
    await removeDirectory(laptop.home);
  });

  /** Touches the key as the user in front of the opened browser would. */
  const touchKey = async () => {
    const { searchParams } = new URL(await laptop.openedAddress());
    const callback = await authorize(ada.client, Object.fromEntries(searchParams), ada.key);
    await fetch(callback);
  };

  /** Runs a command in a terminal, and records the command and its output. */
  async function type(line: string, keys = '', meanwhile?: () => Promise<void>) {
    const terminal = `${findProgram('script')} -qec '${line}' /dev/null`;
    const end = await laptop.type(`printf '${keys}' | ${terminal}`, meanwhile);
    film.push(`$ ${line}\n${end.stdout}`);
    expect([line, end.status, end.stderr]).toEqual([line, 0, '']);
    return end.stdout;
  }

  it('curl, svc login, svc setup and Enter, ssh, aws, kubectl: no fact is typed', async () => {
    expect(await type(`curl -fsSL ${PUBLIC_URL}/install.sh | sh`)).toContain('Next: svc login');
    expect(await type('svc login', '', touchKey)).toContain('Next: svc setup');
    const setup = await type('svc setup', '\\n');
    expect(setup).toContain('[Y/n]');
    expect(await type(`ssh ${login}@127.0.0.1 echo welcome`)).toContain('welcome');
    const caller = await type('aws --profile engineer sts get-caller-identity');
    expect(caller).toContain(`assumed-role/engineer/${ENGINEER}`);
    const version = await type('kubectl --context svc-prod get --raw /version');
    expect(version).toContain('gitVersion');
    expect(api.seen.at(-1)).toMatchObject({ email: ENGINEER, aud: CLUSTER });
    const typed = film.map((scene) => scene.split('\n', 1)[0] ?? '').join('\n');
    for (const fact of [ROLE, CLUSTER, '--host', '--role', '--resource', '--cluster']) {
      expect(typed).not.toContain(fact);
    }
    // eslint-disable-next-line no-console -- the times are the result of the test
    console.log(laptop.report());
  });

  it('the recording of the guide is what the commands print', () => {
    const recorded = `${film.map(shown).join('\n').trim()}\n`;
    if ((process.env['SVC_SCREENSHOTS'] ?? '') !== '') writeFileSync(FILM, recorded);
    expect(recorded).toBe(readFileSync(FILM, 'utf8'));
  });

  it('svc login says that the access changed, until the next setup', async () => {
    expect(await relogin()).not.toContain('svc setup');
    const role = { name: 'auditor', roleArn: `${ROLE}-auditor` };
    await addTarget(app.dataSource, ENGINEER, role);
    expect(await relogin()).toContain('Your access changed: run svc setup.');
    expect((await laptop.type('svc setup --yes')).stdout).toContain('+[profile auditor]');
    expect(await relogin()).not.toContain('svc setup');
    await rows(app.dataSource, 'DELETE FROM access_targets WHERE name = $1', ['auditor']);
    expect(await relogin()).toContain('Your access changed: run svc setup.');
    expect((await laptop.type('svc setup --yes')).stdout).toContain('-[profile auditor]');
  });

  async function relogin(): Promise<string> {
    await laptop.type('rm -f "$HOME/address"');
    const end = await laptop.type('svc login', touchKey);
    expect(end.status).toBe(0);
    return end.stdout;
  }

  /** Replaces everything that differs between two runs by the names of the guide. */
  function shown(scene: string): string {
    return (
      scene
        .replaceAll('\r', '')
        // Removes codes by which readline moves the cursor, and shows the answer, which is Enter
        // alone.
        .replaceAll(/\p{Cc}\[\d*[A-Z]/gu, '')
        .replaceAll(/\[Y\/n\] *\n?/g, '[Y/n] (Enter)\n')
        .replaceAll(/(?<=\/oauth\/authorize\?)\S+/g, '...')
        .replaceAll(laptop.home, '/home/ada')
        .replaceAll(api.url, 'https://prod.k8s.acme.example:6443')
        .replaceAll(/\b127\.0\.0\.1\b/g, 'web1.prod.acme.example')
        .replaceAll(`]:${sshd.port}`, ']:22')
        .replaceAll(`${login}@`, 'deploy@')
        .replaceAll(`as ${login}`, 'as deploy')
        .replaceAll(/\b\d{4}-\d\d-\d\d \d\d:\d\d\b/g, '2026-12-01 17:00')
        .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2026-12-01T09:00:00.000Z')
        .replaceAll(/"UserId": "[^":]+/g, '"UserId": "AROAEXAMPLE')
        .replaceAll(/authentication\.k8s\.io\/v1(?:beta1)?\b/g, 'authentication.k8s.io/v1')
        .replaceAll(/[0-9a-f]{64}/g, '0123456789abcdef'.repeat(4))
        .replaceAll(/[ \t]+$/gm, '')
    );
  }
});
