import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startAwsWorld, type AwsPerson, type AwsWorld } from '../support/aws-person.js';
import { requires } from '../support/programs.js';
import { runProgram } from '../support/svc-command.js';
import '../support/full-scale-only.js';

const ROLE = 'arn:aws:iam::123456789012:role/engineer';
const ROLES = [
  { name: 'engineer', arn: ROLE, region: 'eu-central-1' },
  { name: 'one', arn: 'arn:aws:iam::222222222222:role/one', region: 'eu-west-1' },
  { name: 'two', arn: 'arn:aws:iam::222222222222:role/two', region: 'eu-west-1' },
];
const HOST = '123456789012.dkr.ecr.eu-central-1.amazonaws.com';
const TWINS = '222222222222.dkr.ecr.eu-west-1.amazonaws.com';

let world: AwsWorld;
let ada: AwsPerson;
beforeAll(async () => {
  world = await startAwsWorld('docker.example', ROLES);
});
afterAll(() => world.close());
beforeEach(async () => {
  ada = await world.newPerson();
});
afterEach(() => ada.home.remove());

const helper = (action: string, input = '') => ada.run(['docker', 'credential', action], { input });
const config = () => join(ada.home.path, '.docker/config.json');
const script = () => join(ada.home.path, '.local/bin/docker-credential-svc');
const setup = (...args: string[]) => ada.run(['setup', 'docker', ...args, '--yes']);

describe('svc docker credential, by the protocol of docker-credential-helpers', () => {
  it('get answers with a token of ECR for the registry of the only role of the account', async () => {
    const end = await helper('get', `${HOST}\n`);
    expect(end).toMatchObject({ status: 0, stderr: '' });
    const issued = world.sts.registryTokens.at(-1);
    expect(JSON.parse(end.stdout)).toEqual({
      ServerURL: HOST,
      Username: 'AWS',
      Secret: issued?.password,
    });
    expect(issued).toMatchObject({ service: 'ecr', region: 'eu-central-1' });
    expect(issued?.caller).toContain(`assumed-role/engineer/${ada.email}`);
  });

  it('get asks at each use, so that a de-provisioning counts once the role has ended', async () => {
    await helper('get', HOST);
    const issued = world.sts.registryTokens.length;
    await helper('get', `https://${HOST}`);
    expect(world.sts.registryTokens).toHaveLength(issued + 1);
    await ada.leave();
    await ada.run(['setup', 'aws', '--remove', '--yes']);
    rmSync(ada.home.state(world.app, 'aws'), { recursive: true });
    const end = await helper('get', HOST);
    expect(end.status).toBe(1);
    expect(end.stdout).toContain('Run: svc login');
    expect(world.sts.registryTokens).toHaveLength(issued + 1);
  });

  it.each([
    'ghcr.io',
    'https://index.docker.io/v1/',
    `http://${HOST}`,
    `${HOST}.evil.example`,
    `evil.example/${HOST}`,
    `${HOST}:8443`,
    '123456789012.dkr.ecr.eu-central-1.amazonaws.com.cn',
  ])('get has nothing for %s, in the words that Docker compares', async (server) => {
    const end = await helper('get', server);
    expect(end).toEqual({
      status: 1,
      stdout: 'credentials not found in native keychain\n',
      stderr: '',
    });
  });

  it('answers every other action as the protocol has it', async () => {
    expect(await helper('get', '')).toMatchObject({
      status: 1,
      stdout: 'no credentials server URL\n',
    });
    expect(await helper('list')).toMatchObject({ status: 0, stdout: '{}\n' });
    expect(await helper('erase', HOST)).toMatchObject({ status: 0, stdout: '' });
    const stored = JSON.stringify({ ServerURL: HOST, Username: 'AWS', Secret: 'x' });
    expect((await helper('store', stored)).status).toBe(1);
    expect((await helper('version')).stdout).toMatch(/^docker-credential-svc \d/);
    expect(await helper('sing')).toMatchObject({
      status: 1,
      stdout: 'Unknown credential action `sing`\n',
    });
  });

  it('get asks for a choice where the account has several roles, or none', async () => {
    for (const [host, reason] of [
      [TWINS, 'several roles in the account 222222222222'],
      ['333333333333.dkr.ecr.eu-west-1.amazonaws.com', 'no role in the account 333333333333'],
    ] as const) {
      const end = await helper('get', host);
      expect(end).toMatchObject({ status: 1, stderr: '' });
      expect(end.stdout).toContain(reason);
      expect(end.stdout).toContain(`svc setup docker --registry ${host} --role ARN`);
    }
  });

  it('get signs for the public registry in its one region, with the role that was chosen', async () => {
    await setup('--registry', 'public.ecr.aws', '--role', ROLE);
    const end = await helper('get', 'public.ecr.aws');
    expect(JSON.parse(end.stdout)).toMatchObject({ Username: 'AWS' });
    expect(world.sts.registryTokens.at(-1)).toMatchObject({
      service: 'ecr-public',
      region: 'us-east-1',
    });
  });

  it('get in a read-only environment takes a session that can only read', async () => {
    const end = await ada.run(['docker', 'credential', 'get'], {
      input: HOST,
      env: { SVC_READ_ONLY: '1' },
    });
    expect(end.status).toBe(0);
    expect(world.sts.sessions.at(-1)?.policyArns).toEqual([
      'arn:aws:iam::aws:policy/ReadOnlyAccess',
    ]);
  });

  it('get tells an error of ECR in one line', async () => {
    const server = createServer((_request, response) => {
      const error = { __type: 'x#AccessDeniedException', message: 'User is not\n authorized' };
      response.writeHead(400).end(JSON.stringify(error));
    });
    const port = await listenOnLoopback(server);
    try {
      const env = { AWS_ENDPOINT_URL_ECR: `http://127.0.0.1:${port}` };
      const end = await ada.run(['docker', 'credential', 'get'], { input: HOST, env });
      expect(end).toMatchObject({ status: 1, stderr: '' });
      expect(end.stdout).toBe(
        'AWS ECR refused a token: AccessDeniedException: User is not authorized; Check the policies of the role: it needs ecr:GetAuthorizationToken.\n',
      );
    } finally {
      await stopServer(server);
    }
  });
});

describe('svc setup docker', () => {
  const before = `{\n\t"auths": {},\n\t"credHelpers": {\n\t\t"gcr.io": "gcloud"\n\t},\n\t"currentContext": "mine"\n}`;
  function withConfig(text = before): void {
    mkdirSync(join(ada.home.path, '.docker'));
    writeFileSync(config(), text, { mode: 0o600 });
  }

  it('shows the change, makes it, changes nothing the second time, and takes it out byte for byte', async () => {
    withConfig();
    const shown = await ada.run(['setup', 'docker', '--dry-run']);
    expect(shown.stdout).toContain(`+\t\t"${HOST}": "svc"`);
    expect(shown.stdout).toContain('+++ ' + script());
    expect(existsSync(script())).toBe(false);
    const end = await setup();
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(end.stdout).toContain(`you have several roles for ${TWINS}`);
    expect(JSON.parse(readFileSync(config(), 'utf8'))).toEqual({
      auths: {},
      credHelpers: { 'gcr.io': 'gcloud', [HOST]: 'svc' },
      currentContext: 'mine',
    });
    expect(statSync(config()).mode & 0o777).toBe(0o600);
    expect(statSync(script()).mode & 0o777).toBe(0o755);
    expect((await setup()).stdout).toMatch(/^Nothing to change\.$/m);
    expect(JSON.parse((await helper('list')).stdout)).toEqual({ [HOST]: 'AWS' });
    expect((await setup('--remove')).status).toBe(0);
    expect(readFileSync(config(), 'utf8')).toBe(before);
    expect(existsSync(script())).toBe(false);
    expect(readFileSync(ada.home.config, 'utf8')).not.toContain('docker');
  });

  it('removes the file that it made, with its folder', async () => {
    await setup();
    expect(JSON.parse(readFileSync(config(), 'utf8'))).toEqual({ credHelpers: { [HOST]: 'svc' } });
    await setup('--remove');
    expect(existsSync(join(ada.home.path, '.docker'))).toBe(false);
  });

  it('keeps the helper of another program, and refuses to replace it', async () => {
    withConfig(`{\n\t"credHelpers": {\n\t\t"${HOST}": "ecr-login"\n\t}\n}`);
    const end = await setup('--registry', HOST);
    expect(end).toMatchObject({ status: 1 });
    expect(end.stderr).toContain(`has another helper for ${HOST}`);
    expect(readFileSync(config(), 'utf8')).not.toContain('"svc"');
    writeFileSync(script(), '#!/bin/sh\n');
    expect((await setup('--registry', TWINS, '--role', ROLE)).status).toBe(1);
    expect(readFileSync(script(), 'utf8')).toBe('#!/bin/sh\n');
  });

  it('is left out of svc setup until it was named once', async () => {
    expect((await ada.run(['setup', '--yes'])).status).toBe(0);
    expect(existsSync(config())).toBe(false);
    expect(await setup('--registry', 'ghcr.io')).toMatchObject({ status: 2 });
  });

  requires('docker').describe('with Docker', () => {
    it('the docker command logs in to the registry by the helper that the setup wrote', async () => {
      const seen: IncomingHttpHeaders[] = [];
      const registry = createServer((request, response) => {
        seen.push(request.headers);
        const isLoggedIn = request.headers.authorization !== undefined;
        const challenge = { 'www-authenticate': `Basic realm="http://${HOST}/"` };
        response.writeHead(isLoggedIn ? 404 : 401, isLoggedIn ? {} : challenge).end('{}');
      });
      // Docker tries https first. The 400 is not TLS, so Docker tries plain http next.
      registry.on('connect', (_request, socket) => {
        socket.on('error', () => {});
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
      });
      const port = await listenOnLoopback(registry);
      try {
        await setup();
        const proxy = `http://127.0.0.1:${port}`;
        const args = ['manifest', 'inspect', '--insecure', `${HOST}/app:1`];
        const env = { ...ada.home.env, AWS_ENDPOINT_URL: world.sts.url };
        // Only the proxy resolves the name of the registry, and it leads to this machine.
        const end = await runProgram('docker', args, {
          env: { ...env, HTTP_PROXY: proxy, HTTPS_PROXY: proxy, NO_PROXY: '127.0.0.1' },
        });
        const password = world.sts.registryTokens.at(-1)?.password;
        const expected = `Basic ${Buffer.from(`AWS:${password}`).toString('base64')}`;
        expect(
          seen.map(({ authorization }) => authorization),
          end.stderr,
        ).toContain(expected);
      } finally {
        await stopServer(registry);
      }
    });
  });
});
