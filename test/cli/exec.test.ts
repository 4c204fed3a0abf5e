import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AWS_COMMANDS, requiresAws } from '../support/aws-command.js';
import { startSts, type RunningSts } from '@svc/stand-ins/sts';
import { newAddress } from '../support/client.js';
import { assigned } from '../support/domains.js';
import { allowAll, startGitHubApplication, type GitHubApplication } from '../support/github.js';
import { newKubectl, oldKubectl } from '../support/kubectl.js';
import { findProgram, requires } from '../support/programs.js';
import { addTarget } from '../support/targets.js';
import { runProgram, SvcHome, type RunOptions } from '../support/svc-command.js';

const ROLE = 'arn:aws:iam::123456789012:role/engineer';
const CLUSTER = 'https://prod.k8s.example';
const SHOW = [process.execPath, '-e', 'console.log(JSON.stringify(process.env))'];

let running: GitHubApplication;
let sts: RunningSts;
let home: SvcHome;
let work: string;
let people = 0;
beforeAll(async () => {
  running = await startGitHubApplication();
  const { app, organization } = running;
  await allowAll(organization.admin.client, false);
  for (const name of ['hello', 'world']) running.github.addRepository('octo-org', name);
  const target = { name: 'engineer', roleArn: ROLE, region: 'eu-central-1' };
  await addTarget(app.dataSource, 'admin@octo.example', target);
  await assigned(app, 'admin@octo.example', 'k8s.example');
  const cluster = { name: 'Production', type: 'kubernetes', resource: CLUSTER };
  const options = { address: newAddress() };
  await organization.admin.client.post('/api/v1/applications', cluster, options);
  sts = await startSts({
    provider: { issuer: app.baseUrl, audiences: ['sts.amazonaws.com'] },
    roles: [{ arn: ROLE, trusts: (subject) => subject.endsWith('@octo.example') }],
    buckets: ['reports'],
  });
});
afterAll(async () => {
  await sts.close();
  await running.close();
});
beforeEach(async () => {
  people += 1;
  home = await SvcHome.create();
  await home.logIn(running.app, await running.member(`ada-${people}@octo.example`));
  work = join(home.path, 'work');
  mkdirSync(work);
});
afterEach(() => home.remove());

const env = () => ({
  AWS_ENDPOINT_URL: sts.url,
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  PATH: [home.env['PATH'], dirname(KUBECTL?.path ?? '/usr/bin/kubectl')].join(':'),
});
const svc = (args: readonly string[], options: RunOptions = {}) =>
  home.run(args, { cwd: work, ...options, env: { ...env(), ...options.env } });
const shown = (stdout: string) => JSON.parse(stdout) as Record<string, string>;
const minted = () => running.github.state.tokens;
const address = (name: string) => `${running.github.url}/octo-org/${name}.git`;

/**
 * A kubectl of this machine: a new one, or else version 1.20 of Debian, which is not on the PATH.
 */
const KUBECTL = newKubectl() ?? oldKubectl();

/** Writes a kubeconfig with one cluster and lets `svc setup kubectl` connect it. */
async function withCluster(): Promise<void> {
  mkdirSync(join(home.path, '.kube'));
  const secret = { name: 'by-hand', user: { token: 'a-token-of-another-user' } };
  const clusters = [{ name: 'prod', cluster: { server: CLUSTER } }];
  const config = { apiVersion: 'v1', kind: 'Config', clusters, users: [secret], contexts: [] };
  writeFileSync(join(home.path, '.kube/config'), JSON.stringify(config));
  const end = await svc(['setup', 'kubectl', '--yes']);
  if (end.status !== 0) throw new Error(end.stderr);
}

describe('svc exec', () => {
  it('gives only what is named: a role, or a token for one repository', async () => {
    const aws = await svc(['exec', '--aws', 'engineer', '--', ...SHOW]);
    expect(aws).toMatchObject({ status: 0, stderr: '' });
    expect(shown(aws.stdout)).toMatchObject({
      AWS_ACCESS_KEY_ID: sts.sessions.at(-1)?.accessKeyId,
      AWS_REGION: 'eu-central-1',
    });
    expect(shown(aws.stdout)).not.toHaveProperty('GH_ENTERPRISE_TOKEN');
    const github = await svc(['exec', '--github', 'octo-org/hello', '--', ...SHOW], {
      env: { GITHUB_TOKEN: 'of-the-user' },
    });
    const token = minted().at(-1);
    // The stand-in does not have the host github.com. `gh` sends GH_TOKEN to github.com, so the
    // token of another host must not be in it.
    expect(shown(github.stdout)).toMatchObject({
      GH_ENTERPRISE_TOKEN: token?.token,
      GITHUB_ENTERPRISE_TOKEN: token?.token,
      GH_HOST: new URL(running.github.url).host,
    });
    for (const name of ['GH_TOKEN', 'GITHUB_TOKEN', 'AWS_ACCESS_KEY_ID', 'GIT_CONFIG_COUNT']) {
      expect(shown(github.stdout)).not.toHaveProperty(name);
    }
    expect(token).toMatchObject({ repositories: ['hello'], permissions: { contents: 'write' } });
  });

  it('gives all that is unambiguous without a name, and says in one line what', async () => {
    const git = (...args: string[]) => runProgram('git', args, { cwd: work, env: home.env });
    await git('init', '-q');
    await git('remote', 'add', 'origin', address('world'));
    await svc(['setup', 'git', '--yes']);
    const end = await svc(['exec', '--', ...SHOW]);
    expect(end.status).toBe(0);
    expect(end.stderr).toBe('svc: aws engineer, github octo-org/world\n');
    expect(minted().at(-1)?.repositories).toEqual(['world']);
    expect(shown(end.stdout)).toMatchObject({
      AWS_ACCESS_KEY_ID: sts.sessions.at(-1)?.accessKeyId,
      GH_ENTERPRISE_TOKEN: minted().at(-1)?.token,
    });
  });

  it('gives no token for all repositories of an owner if no admin allows that', async () => {
    const end = await svc(['exec', '--github', 'octo-org', '--', 'echo', 'ran']);
    expect(end).toMatchObject({ status: 4, stdout: '' });
    expect(end.stderr).toContain('repositories');
  });

  it.each([
    [['--github', 'a/b/c/d', '--', 'true'], '--github must be'],
    [['--kube', 'none', '--', 'true'], 'made no context for none'],
    [['--aws', 'engineer'], 'The program is missing'],
    [['--aws', 'nobody', '--', 'true'], 'You have no role nobody'],
  ])('%j is a usage error, and runs nothing', async (args, text) => {
    const end = await svc(['exec', ...args]);
    expect(end).toMatchObject({ status: 2, stdout: '' });
    expect(end.stderr).toContain(text);
  });

  it('ends with 126 and one clear line if the path of the program leads through a file', async () => {
    writeFileSync(join(work, 'package.json'), '{}');
    const end = await svc(['exec', '--aws', 'engineer', '--', './package.json/x']);
    expect(end).toEqual({
      status: 126,
      stdout: '',
      stderr: 'svc: ./package.json/x cannot be run: a part of its path is no folder.\n',
    });
  });

  it('with --read-only gives a role and a token that can only read, and no other credential of the user', async () => {
    const options = ['--aws', 'engineer', '--github', 'octo-org/hello', '--read-only'];
    const end = await svc(['exec', ...options, '--', ...SHOW], {
      env: { SSH_AUTH_SOCK: '/tmp/agent', KUBECONFIG: '/tmp/kubeconfig', GH_TOKEN: 'own' },
    });
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(sts.sessions.at(-1)).toMatchObject({
      policyArns: ['arn:aws:iam::aws:policy/ReadOnlyAccess'],
      tags: { read_only: 'true' },
    });
    expect(minted().at(-1)?.permissions).toEqual({ contents: 'read', metadata: 'read' });
    const child = shown(end.stdout);
    expect(child).toMatchObject({ SVC_READ_ONLY: '1', KUBECONFIG: '/dev/null' });
    for (const name of ['SSH_AUTH_SOCK', 'GH_TOKEN']) expect(child).not.toHaveProperty(name);
  });

  it('refuses in a read-only environment each command that does more, and limits the others', async () => {
    const inside = (...args: string[]) =>
      svc(['exec', '--aws', 'engineer', '--read-only', '--', home.program, ...args]);
    const commands = ['api GET /v1/keys', 'login', 'setup', 'ssh cert', 'git credential get'];
    for (const words of [...commands, `kubectl token --resource ${CLUSTER}`, 'admin members']) {
      const end = await inside(...words.split(' '));
      expect(end, words).toMatchObject({ status: 4, stdout: '' });
      expect(end.stderr).toContain('does more than read, and SVC_READ_ONLY is set here.');
    }
    const issued = minted().length;
    const nested = await inside('exec', '--github', 'octo-org/hello', '--', 'true');
    expect(nested.status).toBe(0);
    expect(minted().slice(issued)[0]?.permissions).toEqual({ contents: 'read', metadata: 'read' });
    expect((await inside('status')).status).toBe(0);
  });

  requires('git').describe('with git', () => {
    it('clones by the token of --read-only, which cannot push, and asks no other helper', async () => {
      await svc(['setup', 'git', '--yes']);
      const config = ['-c', 'user.name=Ada', '-c', 'user.email=ada@octo.example'];
      const line = `git clone -q ${address('hello')} copy && cd copy && git ${config.join(' ')} commit -q --allow-empty -m one && git push -q origin HEAD:main`;
      const options = ['--github', 'octo-org/hello'];
      const pushed = await svc(['exec', ...options, '--', 'sh', '-c', line]);
      expect(pushed).toMatchObject({ status: 0 });
      const again = line.replace('copy &&', 'other &&').replace('cd copy', 'cd other');
      const refused = await svc(['exec', ...options, '--read-only', '--', 'sh', '-c', again]);
      expect(existsSync(join(work, 'other/.git'))).toBe(true);
      expect(refused.status).not.toBe(0);
      expect(refused.stderr).toContain('403');
      expect(minted().at(-1)?.permissions['contents']).toBe('read');
    });
  });

  requires(...(KUBECTL ? [] : ['kubectl'])).describe('with kubectl', () => {
    it('gives a kubeconfig with the one cluster and no secret, which is gone afterwards', async () => {
      await withCluster();
      const script = 'ls -l "$KUBECONFIG" && cat "$KUBECONFIG" && kubectl config current-context';
      const end = await svc(['exec', '--kube', 'prod', '--', 'sh', '-c', script]);
      expect(end).toMatchObject({ status: 0, stderr: '' });
      expect(end.stdout).toMatch(/^-rw-------/);
      expect(end.stdout).toMatch(/\nsvc-prod\n$/);
      expect(end.stdout).toContain(`"command": "${home.program}"`);
      expect(end.stdout).not.toContain('a-token-of-another-user');
      expect(readdirSync(home.state(running.app, 'exec'))).toEqual([]);
      expect(statSync(home.state(running.app, 'exec')).mode & 0o777).toBe(0o700);
    });

    it('gives no cluster with --read-only: refused if it is named, told in a line if not', async () => {
      await withCluster();
      const named = await svc(['exec', '--kube', 'prod', '--read-only', '--', 'echo', 'ran']);
      expect(named).toMatchObject({ status: 2, stdout: '' });
      expect(named.stderr).toContain('cannot be made read-only');
      const end = await svc([
        'exec',
        '--read-only',
        '--',
        'kubectl',
        'config',
        'get-contexts',
        '-o',
        'name',
      ]);
      expect(end).toMatchObject({ status: 0, stdout: '' });
      expect(end.stderr).toContain('left out: kube (a token cannot be made read-only)');
    });
  });
});

describe('svc env', () => {
  const shells: [string, string[], string][] = [
    ['bash', ['-c'], 'eval "$(svc env --aws engineer --shell bash)"'],
    ['zsh', ['-f', '-c'], 'eval "$(svc env --aws engineer --shell zsh)"'],
    ['fish', ['--no-config', '-c'], 'svc env --aws engineer --shell fish | source'],
  ];
  it.each(shells.filter(([shell]) => findProgram(shell) !== undefined))(
    '%s takes the lines, and loses the variables of other credentials',
    async (shell, options, line) => {
      const show = `${line}; "${process.execPath}" -e 'console.log(JSON.stringify(process.env))'`;
      const end = await runProgram(shell, [...options, show], {
        cwd: work,
        env: { ...home.env, ...env(), AWS_PROFILE: 'other' },
      });
      expect(end).toMatchObject({ status: 0, stderr: '' });
      const session = sts.sessions.at(-1);
      expect(shown(end.stdout)).toMatchObject({
        AWS_ACCESS_KEY_ID: session?.accessKeyId,
        AWS_SECRET_ACCESS_KEY: session?.secretAccessKey,
        AWS_SESSION_TOKEN: session?.sessionToken,
      });
      expect(shown(end.stdout)).not.toHaveProperty('AWS_PROFILE');
    },
  );

  it('prints no secret on a terminal without --force, and refuses an unknown shell', async () => {
    const args = ['env', '--aws', 'engineer'];
    const options = { cwd: work, env: env() };
    const refused = await home.runInTerminal(args, options);
    expect(refused.status).toBe(2);
    expect(refused.stdout).toContain('this is a screen');
    expect(refused.stdout).not.toContain('AWS_SECRET_ACCESS_KEY');
    const forced = await home.runInTerminal([...args, '--force'], options);
    expect(forced.stdout).toContain('AWS_SECRET_ACCESS_KEY');
    expect(await svc([...args, '--shell', 'tcsh'])).toMatchObject({ status: 2, stdout: '' });
  });

  it('with --read-only marks the shell, so that its next commands can only read', async () => {
    const line = 'eval "$(svc env --aws engineer --read-only --shell bash)"; svc api GET /v1/keys';
    const end = await runProgram('bash', ['-c', line], {
      cwd: work,
      env: { ...home.env, ...env() },
    });
    expect(end).toMatchObject({ status: 4, stdout: '' });
    expect(sts.sessions.at(-1)?.policyArns).toHaveLength(1);
  });

  it('with --json prints the change as a document', async () => {
    const { stdout } = await svc(['env', '--aws', 'engineer', '--json']);
    const { set, unset } = JSON.parse(stdout) as { set: object; unset: string[] };
    expect(set).toHaveProperty('AWS_SESSION_TOKEN');
    expect(unset).toContain('AWS_PROFILE');
  });
});

requiresAws.describe('the aws command under svc exec', () => {
  it('reads with the role, and --read-only refuses a write', async () => {
    const [aws = ''] = AWS_COMMANDS.values();
    const exec = (options: readonly string[], ...args: string[]) =>
      svc(['exec', '--aws', 'engineer', ...options, '--', aws, ...args], {
        env: { AWS_EC2_METADATA_DISABLED: 'true' },
      });
    expect((await exec(['--read-only'], 's3', 'ls')).stdout).toContain('reports');
    const refused = await exec(['--read-only'], 's3api', 'create-bucket', '--bucket', 'mine');
    expect(refused.stderr).toContain('AccessDenied');
    expect(sts.madeBuckets).toEqual([]);
  });
});
