import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { AWS_COMMANDS, requiresAws } from '../support/aws-command.js';
import { startAwsWorld, type AwsPerson, type AwsWorld } from '../support/aws-person.js';
import { requires } from '../support/programs.js';
import { auditOf } from '../support/rows.js';
import { changedRequests, commandWords, runProgram } from '../support/svc-command.js';
import { keepOpened, openedAddress } from '../support/svc-login.js';
import '../support/full-scale-only.js';

const ENGINEER = 'arn:aws:iam::123456789012:role/engineer';
const READER = 'arn:aws:iam::123456789012:role/teams/reader';
const TWIN = 'arn:aws:iam::999999999999:role/reader';
const CHINESE = 'arn:aws-cn:iam::111111111111:role/operator';
const READ_ONLY = 'arn:aws:iam::aws:policy/ReadOnlyAccess';
const ROLES = [
  { name: 'Engineer', arn: ENGINEER, region: 'eu-central-1' },
  { name: 'reader', arn: READER },
  { name: 'reader of twins', arn: TWIN },
  { name: 'operator', arn: CHINESE, region: 'cn-north-1' },
];
/** A program that prints its environment and its arguments as JSON. */
const SHOW = [
  process.execPath,
  '-e',
  'console.log(JSON.stringify({ env: process.env, argv: process.argv.slice(1) }))',
  '--',
];

/** The byte that a terminal turns into SIGINT. */
const CTRL_C = '\u0003';

let world: AwsWorld;
let ada: AwsPerson;
beforeAll(async () => {
  world = await startAwsWorld('exec.example', ROLES);
});
afterAll(() => world.close());
beforeEach(async () => {
  ada = await world.newPerson();
});
afterEach(() => ada.home.remove());

const lastSession = () => world.sts.sessions.at(-1);
const shown = (stdout: string) =>
  JSON.parse(stdout) as { env: Record<string, string>; argv: string[] };

describe('svc aws exec', () => {
  it('gives the credentials to the program alone: no other variable of AWS, and no argument', async () => {
    const env = {
      AWS_PROFILE: 'other',
      AWS_ACCESS_KEY_ID: 'AKIAOTHER',
      AWS_WEB_IDENTITY_TOKEN_FILE: '/tmp/other',
      AWS_REGION: 'us-east-2',
      OWN: 'stays',
    };
    const end = await ada.run(['aws', 'exec', 'Engineer', '--', ...SHOW, '--flag', 'a b'], { env });
    expect(end).toMatchObject({ status: 0, stderr: '' });
    const { env: child, argv } = shown(end.stdout);
    const session = lastSession();
    expect(child).toMatchObject({
      AWS_ACCESS_KEY_ID: session?.accessKeyId,
      AWS_SECRET_ACCESS_KEY: session?.secretAccessKey,
      AWS_SESSION_TOKEN: session?.sessionToken,
      AWS_CREDENTIAL_EXPIRATION: session?.expiresAt.toISOString().replace('.000Z', 'Z'),
      AWS_REGION: 'eu-central-1',
      AWS_DEFAULT_REGION: 'eu-central-1',
      OWN: 'stays',
    });
    for (const name of ['AWS_PROFILE', 'AWS_WEB_IDENTITY_TOKEN_FILE', 'SVC_READ_ONLY']) {
      expect(child).not.toHaveProperty(name);
    }
    expect(argv).toEqual(['--flag', 'a b']);
    expect(session).toMatchObject({ policyArns: [] });
    expect(session?.tags).not.toHaveProperty('read_only');
  });

  it.each([
    ['the name of the list', 'Engineer', ENGINEER],
    ['the last part of the ARN', 'engineer', ENGINEER],
    ['the ARN', READER, READER],
  ])('takes the role by %s', async (_, name, arn) => {
    const end = await ada.run(['aws', 'exec', name, '--', 'true']);
    expect(end).toMatchObject({ status: 0, stdout: '', stderr: '' });
    expect(lastSession()?.arn).toContain(
      `${arn.split(':')[4]}:assumed-role/${arn.split('/').at(-1)}/`,
    );
  });

  it('takes the profile of svc setup aws with its region, without asking the server for the list', async () => {
    await ada.run(['setup', 'aws', '--yes']);
    const options = ['--role', ENGINEER, '--profile', 'short', '--region', 'eu-west-1'];
    await ada.run(['setup', 'aws', ...options, '--duration', '900', '--yes']);
    const end = await ada.run(['aws', 'exec', '--profile', 'short', '--', ...SHOW]);
    expect(shown(end.stdout).env['AWS_REGION']).toBe('eu-west-1');
    const left = (lastSession()?.expiresAt.getTime() ?? 0) - Date.now();
    expect(left).toBeLessThanOrEqual(900_000);
  });

  it('refuses a name that several roles have, and lists them', async () => {
    const end = await ada.run(['aws', 'exec', 'reader', '--', 'true']);
    expect(end).toMatchObject({ status: 2, stdout: '' });
    expect(end.stderr).toContain('Several roles are reader.');
    for (const arn of [READER, TWIN]) expect(end.stderr).toContain(arn);
    expect((await ada.run(['aws', 'exec', '--', 'true'])).stderr).toContain('several roles');
    expect(await ada.run(['aws', 'exec', 'writer', '--', 'true'])).toMatchObject({ status: 2 });
  });

  it.each([
    [['Engineer', 'true'], 'The program is missing'],
    [['Engineer', '--'], 'The program is missing'],
    [['Engineer', '--profile', 'x', '--', 'true'], 'not both'],
    [['Engineer', '--duration', '1', '--', 'true'], '--duration must be'],
    [['arn:aws:iam::1:role/x', '--', 'true'], 'must be like arn:'],
  ])('%j is a usage error, and runs nothing', async (args, text) => {
    const end = await ada.run(['aws', 'exec', ...args]);
    expect(end).toMatchObject({ status: 2, stdout: '' });
    expect(end.stderr).toContain(text);
  });

  it.each([
    [['sh', '-c', 'exit 7'], 7],
    [['sh', '-c', 'kill -KILL $$'], 137],
    [['no-such-program-of-svc'], 127],
    [['/etc'], 126],
  ])('ends with the status of %j: %i', async (program, status) => {
    expect(await ada.run(['aws', 'exec', 'Engineer', '--', ...program])).toMatchObject({ status });
  });

  it('passes the streams through, a shell never runs, and a pipe on standard input stays whole', async () => {
    const input = 'x'.repeat(300_000);
    const end = await ada.run(['aws', 'exec', 'Engineer', '--', 'cat'], { input });
    expect(end).toMatchObject({ status: 0, stdout: input });
    const raw = await ada.run(['aws', 'exec', 'Engineer', '--', 'echo', '$HOME', ';', 'false']);
    expect(raw).toMatchObject({ status: 0, stdout: '$HOME ; false\n' });
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'passes %s on to the program, and ends as the program does',
    async (signal) => {
      const ready = join(ada.home.path, 'ready');
      const script = `trap 'echo got; exit 3' ${signal.slice(3)}; : > '${ready}'; while :; do sleep 0.05; done`;
      const end = await ada.run(['aws', 'exec', 'Engineer', '--', 'sh', '-c', script], {
        started: (child) => {
          child.stdin?.end();
          void vi
            .waitFor(() => expect(existsSync(ready)).toBe(true), { timeout: 90_000 })
            .then(() => child.kill(signal));
        },
      });
      expect(end).toMatchObject({ status: 3, stdout: 'got\n' });
    },
  );

  it('leaves no program behind if a signal comes in the moment of its start', async () => {
    const preload = join(ada.home.path, 'at-start.cjs');
    const text = `const childProcess = require('node:child_process');
const { spawn } = childProcess;
childProcess.spawn = (...args) => {
  const child = spawn(...args);
  if (args[0] === 'sleep') process.kill(process.pid, 'SIGTERM');
  return child;
};
require('node:module').syncBuiltinESMExports();`;
    writeFileSync(preload, text);
    const NODE_OPTIONS = `${ada.home.env['NODE_OPTIONS']} --require=${preload}`;
    const end = await ada.run(['aws', 'exec', 'Engineer', '--', 'sleep', '10'], {
      env: { NODE_OPTIONS },
    });
    expect(end.status).toBe(143);
  });

  requires('script').describe('on a terminal', () => {
    /**
     * A program that sends svc a SIGTERM at its first SIGINT, and prints how many SIGINTs it got.
     */
    const COUNT = `let count = 0;
process.on('SIGINT', () => (count += 1) === 1 && process.kill(process.ppid, 'SIGTERM'));
process.on('SIGTERM', () => { console.log('SIGINT came: ' + count); process.exit(); });
setInterval(() => {}, 60_000);
console.log('ready');`;

    /**
     * Delays svc by 50 ms after a SIGINT. Two signals of one kind that come together count as one,
     * and then the program could not notice the second one.
     */
    const LATE = `const wait = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
if (!process.argv[1].endsWith('count.cjs')) process.on('SIGINT', wait);`;

    it.each(['< /dev/null', '< /dev/null > output', '< /dev/null 2> output', ''])(
      'the program gets one SIGINT of Ctrl-C with the redirections "%s"',
      async (redirections) => {
        const { home } = ada;
        const output = join(home.path, 'output');
        const program = join(home.path, 'count.cjs');
        const late = join(home.path, 'late.cjs');
        writeFileSync(program, COUNT);
        writeFileSync(late, LATE);
        const NODE_OPTIONS = `${home.env['NODE_OPTIONS']} --require=${late}`;
        const words = [...commandWords(home.program), 'aws', 'exec', 'Engineer', '--'];
        const line = [...words, process.execPath, program].map((word) => `'${word}'`).join(' ');
        const printed = () => (existsSync(output) ? readFileSync(output, 'utf8') : '');
        const end = await runProgram(
          'script',
          ['-qec', `exec ${line} ${redirections}`, '/dev/null'],
          {
            cwd: home.path,
            env: { ...home.env, AWS_ENDPOINT_URL: world.sts.url, NODE_OPTIONS },
            started: (child) => {
              let shownText = '';
              child.stdout?.on('data', (chunk) => (shownText += String(chunk)));
              void vi
                .waitFor(() => expect(shownText + printed()).toContain('ready'), {
                  timeout: 90_000,
                })
                .then(() => child.stdin?.write(CTRL_C));
            },
          },
        );
        expect(end.stdout + printed()).toContain('SIGINT came: 1');
      },
    );
  });

  it('tells a signal that ended the program: 128 and its number', async () => {
    const ready = join(ada.home.path, 'ready');
    const script = `: > '${ready}'; exec sleep 60`;
    const end = await ada.run(['aws', 'exec', 'Engineer', '--', 'sh', '-c', script], {
      started: (child) => {
        child.stdin?.end();
        void vi
          .waitFor(() => expect(existsSync(ready)).toBe(true), { timeout: 90_000 })
          .then(() => child.kill('SIGTERM'));
      },
    });
    expect(end.status).toBe(143);
  });

  it('gives nothing after SCIM deleted the user', async () => {
    await ada.leave();
    const end = await ada.run(['aws', 'exec', ENGINEER, '--', 'echo', 'ran']);
    expect(end).toMatchObject({ status: 3, stdout: '' });
  });

  it('with --read-only demands a policy that can only read, and a tag, which the audit log names', async () => {
    const end = await ada.run(['aws', 'exec', 'Engineer', '--read-only', '--', ...SHOW], {
      env: { SSH_AUTH_SOCK: '/tmp/agent', GH_TOKEN: 'a-token-of-the-user' },
    });
    expect(end).toMatchObject({ status: 0, stderr: '' });
    const session = lastSession();
    expect(session?.policyArns).toEqual([READ_ONLY]);
    expect(session?.tags).toMatchObject({ read_only: 'true' });
    const { env } = shown(end.stdout);
    expect(env).toMatchObject({ AWS_ACCESS_KEY_ID: session?.accessKeyId, SVC_READ_ONLY: '1' });
    for (const name of ['SSH_AUTH_SOCK', 'GH_TOKEN']) expect(env).not.toHaveProperty(name);
    const events = await auditOf(world.app.dataSource, ada.email);
    expect(events.find(({ type }) => type === 'aws_credential')?.details).toMatchObject({
      role_arn: ENGINEER,
      read_only: true,
    });
  });

  it('takes the policy of the partition of the role', async () => {
    await ada.run(['aws', 'exec', 'operator', '--read-only', '--', 'true']);
    expect(lastSession()?.policyArns).toEqual(['arn:aws-cn:iam::aws:policy/ReadOnlyAccess']);
  });

  it('keeps the two kinds of sessions apart, and SVC_READ_ONLY of the environment asks for one', async () => {
    await ada.run(['aws', 'exec', 'Engineer', '--', 'true']);
    const process = ['aws', 'credential-process', '--role', ENGINEER, '--region', 'eu-central-1'];
    const full = JSON.parse((await ada.run(process)).stdout);
    expect(full.AccessKeyId).toBe(lastSession()?.accessKeyId);
    const env = { SVC_READ_ONLY: '1' };
    const limited = JSON.parse((await ada.run(process, { env })).stdout);
    expect(limited.AccessKeyId).not.toBe(full.AccessKeyId);
    expect(lastSession()).toMatchObject({
      accessKeyId: limited.AccessKeyId,
      policyArns: [READ_ONLY],
    });
    expect(JSON.parse((await ada.run(process)).stdout)).toEqual(full);
  });

  it('does not give a session that can only read if the server does not mark the token', async () => {
    const preload = join(ada.home.path, 'old-server.cjs');
    writeFileSync(
      preload,
      changedRequests(`
  const request = plain(url, options);
  const end = request.end.bind(request);
  const older = (body) => JSON.stringify({ role_arn: JSON.parse(body).role_arn });
  request.end = (body) => end(url.endsWith('/v1/credentials/aws/token') ? older(body) : body);
  return request;`),
    );
    const issued = world.sts.sessions.length;
    const end = await ada.run(['aws', 'exec', 'Engineer', '--read-only', '--', 'echo', 'ran'], {
      env: { NODE_OPTIONS: `${ada.home.env['NODE_OPTIONS']} --require=${preload}` },
    });
    expect(end).toMatchObject({ status: 1, stdout: '' });
    expect(end.stderr).toContain('does not mark sessions that can only read');
    expect(world.sts.sessions).toHaveLength(issued);
  });

  requiresAws.describe('with the aws command', () => {
    it('the aws command lists with it, and makes a bucket, which --read-only refuses', async () => {
      const [program = ''] = AWS_COMMANDS.values();
      const aws = (options: readonly string[], ...args: string[]) =>
        ada.run(['aws', 'exec', 'Engineer', ...options, '--', program, ...args], {
          env: { AWS_EC2_METADATA_DISABLED: 'true' },
        });
      expect((await aws([], 's3', 'ls')).stdout).toContain('reports');
      const bucket = `bucket-${ada.email.split('@')[0]}`;
      const made = await aws([], 's3api', 'create-bucket', '--bucket', bucket);
      expect(made).toMatchObject({ status: 0 });
      expect(world.sts.madeBuckets).toContain(bucket);
      const reading = await aws(['--read-only'], 'sts', 'get-caller-identity');
      expect(JSON.parse(reading.stdout).Arn).toContain(`assumed-role/engineer/${ada.email}`);
      const refused = await aws(
        ['--read-only'],
        's3api',
        'create-bucket',
        '--bucket',
        `${bucket}-2`,
      );
      expect(refused.status).not.toBe(0);
      expect(refused.stderr).toContain('AccessDenied');
      expect(world.sts.madeBuckets).not.toContain(`${bucket}-2`);
    });
  });
});

describe('svc aws roles', () => {
  it('lists the roles with their profiles and regions', async () => {
    await ada.run(['setup', 'aws', '--yes']);
    const { stdout, status } = await ada.run(['aws', 'roles']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^NAME +PROFILE +REGION +ROLE\n/);
    expect(stdout).toMatch(new RegExp(`^Engineer +Engineer +eu-central-1 +${ENGINEER}$`, 'm'));
    const { roles } = JSON.parse((await ada.run(['aws', 'roles', '--json'])).stdout);
    expect(roles).toContainEqual({
      name: 'reader',
      role_arn: READER,
      profile: 'reader',
      region: null,
      listed: true,
    });
    expect(roles).toHaveLength(ROLES.length);
  });
});

describe('svc aws console', () => {
  const console = (...args: string[]) => ada.run(['aws', 'console', 'Engineer', ...args]);

  it('prints an address that signs in to the page of the service, by credentials of its own', async () => {
    await ada.run(['aws', 'exec', 'Engineer', '--', 'true']);
    const sessions = world.sts.sessions.length;
    const end = await console('--service', 'ec2', '--print');
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(world.sts.sessions).toHaveLength(sessions + 1);
    expect(end.stdout).toMatch(/^http\S+\n$/);
    for (const secret of [lastSession()?.secretAccessKey, lastSession()?.sessionToken]) {
      expect(end.stdout).not.toContain(encodeURIComponent(secret ?? ''));
    }
    expect((await fetch(end.stdout.trim())).status).toBe(200);
    expect(world.sts.signIns.signIns.at(-1)).toMatchObject({
      session: { accessKeyId: lastSession()?.accessKeyId },
      destination: 'https://eu-central-1.console.aws.amazon.com/ec2/home?region=eu-central-1',
    });
    const request = world.sts.signIns.requests.at(-1);
    expect(request?.method).toBe('POST');
    expect(request?.parameters.has('SessionDuration')).toBe(false);
  });

  it('gives the browser an address of this machine, which leads there once', async () => {
    keepOpened(ada.home);
    const running = console();
    const address = await openedAddress(ada.home);
    expect(address.hostname).toBe('127.0.0.1');
    expect(address.href).not.toContain('SigninToken');
    const wrong = await fetch(new URL('/other', address), { redirect: 'manual' });
    expect(wrong.status).toBe(404);
    const answers = await Promise.allSettled(
      [1, 2].map(() => fetch(address, { redirect: 'manual' })),
    );
    const statuses = answers.map((answer) =>
      answer.status === 'fulfilled' ? answer.value.status : 0,
    );
    expect(statuses.filter((status) => status === 302)).toHaveLength(1);
    const end = await running;
    expect(end).toMatchObject({ status: 0, stdout: '' });
    expect(end.stderr).toMatch(
      /^Opening the AWS console as Engineer, until \S+Z at the latest\.\n$/,
    );
    const [redirect] = answers.flatMap((answer) =>
      answer.status === 'fulfilled' ? (answer.value.headers.get('location') ?? []) : [],
    );
    expect((await fetch(redirect ?? '')).status).toBe(200);
  });

  it('is read-only if that is asked for, and refuses a page that is no name', async () => {
    await console('--read-only', '--print');
    expect(lastSession()?.policyArns).toEqual([READ_ONLY]);
    const end = await console('--service', '../evil', '--print');
    expect(end).toMatchObject({ status: 2, stdout: '' });
  });

  it.each([
    [CHINESE, 'signin.amazonaws.cn', 'https://cn-north-1.console.amazonaws.cn/console/home'],
    [ENGINEER, 'signin.aws.amazon.com', 'https://eu-central-1.console.aws.amazon.com/console/home'],
  ])('asks the sign-in of the partition of %s', async (arn, host, page) => {
    const preload = join(ada.home.path, 'sign-in.cjs');
    writeFileSync(
      preload,
      changedRequests(`
  const { host } = new URL(url);
  const isSignIn = host.startsWith('signin.');
  return isSignIn ? answer(200, JSON.stringify({ SigninToken: host })) : plain(url, options);`),
    );
    const name = arn === CHINESE ? 'operator' : 'Engineer';
    const env = {
      AWS_ENDPOINT_URL: '',
      AWS_ENDPOINT_URL_STS: world.sts.url,
      NODE_OPTIONS: `${ada.home.env['NODE_OPTIONS']} --require=${preload}`,
    };
    const end = await ada.run(['aws', 'console', name, '--print'], { env });
    const url = new URL(end.stdout.trim());
    expect([url.host, url.searchParams.get('SigninToken')]).toEqual([host, host]);
    expect(url.searchParams.get('Destination')).toContain(`${page}?region=`);
  });

  it('never sends credentials to an address without https', async () => {
    const end = await ada.run(['aws', 'console', 'Engineer', '--print'], {
      env: { AWS_ENDPOINT_URL_SIGNIN: 'http://signin.example.com' },
    });
    expect(end).toMatchObject({ status: 2, stdout: '' });
  });
});

it('svc help aws names every word', async () => {
  const { stdout } = await ada.run(['help', 'aws']);
  for (const word of ['exec', 'console', 'roles', 'credential-process']) {
    expect(stdout).toContain(`svc aws ${word}`);
  }
  expect(readFileSync(ada.home.config, 'utf8')).not.toContain('AKIA');
});
