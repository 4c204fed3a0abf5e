import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { startSts, type RunningSts } from '@svc/stand-ins/sts';
import { startTestApp, type TestApp } from '../support/app.js';
import { AWS_COMMANDS, requiresAws } from '../support/aws-command.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { changedRequests, runProgram, SvcHome } from '../support/svc-command.js';

const ROLE = 'arn:aws:iam::123456789012:role/engineer';
const PROCESS = ['aws', 'credential-process', '--role', ROLE];

describe('svc aws', () => {
  let app: TestApp;
  let sts: RunningSts;
  let organization: ScimOrganization;
  let userId: string;
  let home: SvcHome;
  let people = 0;
  beforeAll(async () => {
    app = await startTestApp();
    organization = await foundOrganization(app, 'tools.example');
    sts = await startSts({
      provider: { issuer: app.baseUrl, audiences: ['sts.amazonaws.com'] },
      roles: [{ arn: ROLE, trusts: (subject) => subject.endsWith('@tools.example') }],
      buckets: ['reports'],
    });
  });
  afterAll(async () => {
    await sts.close();
    await app.close();
  });
  beforeEach(async () => {
    people += 1;
    const email = `user-${people}@tools.example`;
    userId = (await organization.scim('POST', '/Users', { userName: email })).json.id;
    home = await SvcHome.create();
    await home.logIn(app, await app.enrolled(email));
  });
  afterEach(() => home.remove());

  const run = (args: readonly string[] = PROCESS, env: Readonly<Record<string, string>> = {}) =>
    home.run(args, { env: { AWS_ENDPOINT_URL_STS: sts.url, ...env } });
  const cacheFiles = () => {
    const folder = home.state(app, 'aws');
    return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  };
  /**
   * Lets the cached credentials expire in so many milliseconds; a negative number is in the past.
   */
  function endCacheIn(milliseconds: number): void {
    const [path = ''] = cacheFiles();
    const cached = JSON.parse(readFileSync(path, 'utf8'));
    cached.credentials.Expiration = new Date(Date.now() + milliseconds).toISOString();
    writeFileSync(path, JSON.stringify(cached), { mode: 0o600 });
  }
  const deleteUser = () => organization.scim('DELETE', `/Users/${userId}`);
  /** Returns the value of NODE_OPTIONS by which Node runs a script before the command. */
  function preloaded(script: string): string {
    const path = join(home.path, 'preload.cjs');
    writeFileSync(path, script);
    return `${home.env['NODE_OPTIONS']} --require=${path}`;
  }
  /** Runs a test with a server that the command takes for AWS STS. */
  async function withServer(answer: RequestListener, test: (url: string) => Promise<void>) {
    const server = createServer(answer);
    const port = await listenOnLoopback(server);
    try {
      await test(`http://127.0.0.1:${port}`);
    } finally {
      await stopServer(server);
    }
  }

  it('prints the credentials of a role in the format of credential_process, for the user by name', async () => {
    const end = await run();
    expect(end).toMatchObject({ status: 0, stderr: '' });
    const session = sts.sessions.at(-1);
    expect(JSON.parse(end.stdout)).toEqual({
      Version: 1,
      AccessKeyId: session?.accessKeyId,
      SecretAccessKey: session?.secretAccessKey,
      SessionToken: session?.sessionToken,
      Expiration: session?.expiresAt.toISOString().replace('.000Z', 'Z'),
    });
    expect(session?.arn).toMatch(new RegExp(`/user-${people}@tools\\.example$`));
    const [cache = ''] = cacheFiles();
    expect(statSync(cache).mode & 0o777).toBe(0o600);
    expect(statSync(home.state(app, 'aws')).mode & 0o777).toBe(0o700);
  });

  it('svc api gets the token of the page about AWS, which STS exchanges', async () => {
    const command = guideBlock('../credentials/aws.md', 'token');
    const answer = JSON.parse(await runToSuccess(command, { env: home.env }));
    expect(answer).toEqual({ id_token: expect.any(String), expires_in: 300 });
    const query = new URLSearchParams({
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: ROLE,
      RoleSessionName: 'program',
      WebIdentityToken: answer.id_token as string,
    });
    expect((await fetch(sts.url, { method: 'POST', body: query })).status).toBe(200);
  });

  it('gives the same credentials until 10 minutes before their end, and then new ones', async () => {
    const first = await run();
    const issued = sts.sessions.length;
    expect((await run()).stdout).toBe(first.stdout);
    endCacheIn(601_000 + 20_000);
    expect((await run()).status).toBe(0);
    expect(sts.sessions).toHaveLength(issued);
    for (const left of [599_000, -1000]) {
      endCacheIn(left);
      const renewed = await run();
      expect(renewed).toMatchObject({ status: 0, stderr: '' });
      expect(renewed.stdout).not.toBe(first.stdout);
    }
    expect(sts.sessions).toHaveLength(issued + 2);
  });

  it('renews once for processes that start at once', async () => {
    const issued = sts.sessions.length;
    const ends = await Promise.all(Array.from({ length: 4 }, () => run()));
    expect(ends.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
    expect(new Set(ends.map(({ stdout }) => stdout)).size).toBe(1);
    expect(sts.sessions).toHaveLength(issued + 1);
  });

  it('keeps other wishes, and another login, apart', async () => {
    const first = await run();
    const named = await run([...PROCESS, '--session-name', 'deploy', '--duration', '900']);
    expect(sts.sessions.at(-1)?.arn).toMatch(/\/deploy$/);
    expect(named.stdout).not.toBe(first.stdout);
    const second = `second-${people}@tools.example`;
    await organization.scim('POST', '/Users', { userName: second });
    await home.logIn(app, await app.enrolled(second));
    await run();
    expect(sts.sessions.at(-1)?.arn).toContain(`/second-${people}@tools.example`);
  });

  it('goes on with valid credentials while the network is away, and says so once they end', async () => {
    const first = await run();
    const offline = {
      NODE_OPTIONS: preloaded(
        changedRequests("throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });"),
      ),
    };
    endCacheIn(300_000);
    const { stdout } = await run(PROCESS, offline);
    expect(JSON.parse(stdout).AccessKeyId).toBe(JSON.parse(first.stdout).AccessKeyId);
    endCacheIn(-1000);
    const ended = await run(PROCESS, offline);
    expect(ended).toMatchObject({ status: 1, stdout: '' });
    expect(ended.stderr).toContain('cannot be reached');
  });

  it('is refused after SCIM deleted the user, in a clear line and without a secret', async () => {
    await run();
    await deleteUser();
    endCacheIn(599_000);
    const end = await run();
    expect(end).toMatchObject({ status: 3, stdout: '' });
    expect(end.stderr).toMatch(/^svc: You are not logged in: .+\n {5}Run: svc login\n$/);
  });

  it('says what to do without a login', async () => {
    const stranger = await SvcHome.create();
    try {
      stranger.useServer(app);
      const end = await stranger.run(PROCESS);
      expect(end).toMatchObject({ status: 3, stdout: '' });
      expect(end.stderr).toContain('Run: svc login');
    } finally {
      await stranger.remove();
    }
  });

  it.each([
    [['aws'], 'A word is missing'],
    [['aws', 'sing'], 'Unknown: sing'],
    [['aws', 'credential-process'], '--role is missing'],
    [['aws', 'credential-process', '--role', 'engineer'], '--role must be'],
    [[...PROCESS, '--duration', '60'], '--duration must be'],
    [[...PROCESS, '--session-name', 'a b'], '--session-name must be'],
    [[...PROCESS, '--region', 'evil.example/'], '--region must be'],
  ])('%j is a usage error', async (args, text) => {
    const end = await home.run(args);
    expect(end).toMatchObject({ status: 2, stdout: '' });
    expect(end.stderr).toContain(text);
  });

  it.each([
    ['http://sts.example.com', 'AWS_ENDPOINT_URL_STS'],
    ['nonsense', 'AWS_ENDPOINT_URL'],
  ])('never sends a token to %s', async (address, variable) => {
    const end = await home.run(PROCESS, { env: { [variable]: address } });
    expect(end).toMatchObject({ status: 2, stdout: '' });
    expect(end.stderr).toContain(`${variable} is not an https URL`);
  });

  it('takes AWS_ENDPOINT_URL_STS before AWS_ENDPOINT_URL', async () => {
    const end = await run(PROCESS, { AWS_ENDPOINT_URL: 'http://127.0.0.1:1' });
    expect(end.status).toBe(0);
    const other = await home.run([...PROCESS, '--duration', '901'], {
      env: { AWS_ENDPOINT_URL: sts.url, AWS_REGION: 'eu-central-1' },
    });
    expect(other.status).toBe(0);
  });

  it.each([
    [{ AWS_REGION: 'eu-central-1' }, 'https://sts.eu-central-1.amazonaws.com/'],
    [{ AWS_DEFAULT_REGION: 'cn-north-1' }, 'https://sts.cn-north-1.amazonaws.com.cn/'],
    [{ AWS_REGION: 'us-gov-east-1' }, 'https://sts.us-gov-east-1.amazonaws.com/'],
    [{}, 'https://sts.amazonaws.com/'],
  ])('with %j it asks %s', async (env, address) => {
    const options = preloaded(
      changedRequests(`
  if (!url.includes('amazonaws')) return plain(url, options);
  process.stderr.write('asked ' + url + '\\n');
  return answer(403, '<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>');`),
    );
    const end = await home.run(PROCESS, { env: { ...env, NODE_OPTIONS: options } });
    expect(end.stderr).toContain(`asked ${address}\n`);
    expect(end).toMatchObject({ status: 4, stdout: '' });
  });

  it('shows an error of STS in one line with the next step, and never the token that it repeats', async () => {
    await withServer(
      (request, response) => {
        let body = '';
        request.on('data', (chunk) => (body += String(chunk)));
        request.on('end', () => {
          const token = new URLSearchParams(body).get('WebIdentityToken');
          response
            .writeHead(400)
            .end(
              `<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>bad &lt;${token}&gt;\u001b[31m\nmore</Message></Error></ErrorResponse>`,
            );
        });
      },
      async (url) => {
        const end = await run(PROCESS, { AWS_ENDPOINT_URL_STS: url });
        expect(end).toMatchObject({ status: 4, stdout: '' });
        expect(end.stderr).toBe(
          'svc: AWS STS refused the role: InvalidIdentityToken: bad <[token]>[31mmore\n' +
            '     Check the identity provider in IAM: its URL and its audience.\n',
        );
        expect(cacheFiles()).toEqual([]);
      },
    );
  });

  it.each([
    ['garbage', 200, 'hello', 1],
    ['half of the credentials', 200, '<AccessKeyId>ASIA</AccessKeyId>', 1],
    ['a page of a proxy', 502, '<html>bad gateway</html>', 1],
    ['a redirect', 302, '', 1],
    ['a role that it does not trust', 403, '<Code>AccessDenied</Code>', 4],
  ])('says so when the answer is %s, and stores nothing', async (_, status, body, exit) => {
    await withServer(
      (_request, response) =>
        void response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end(body),
      async (url) => {
        const end = await run(PROCESS, { AWS_ENDPOINT_URL_STS: url });
        expect(end).toMatchObject({ status: exit, stdout: '' });
        expect(end.stderr).toMatch(/^svc: .+\n {5}.+\n$/);
        expect(cacheFiles()).toEqual([]);
      },
    );
  });

  describe('svc setup aws', () => {
    const config = () => join(home.path, '.aws/config');
    const SETUP = ['setup', 'aws', '--role', ROLE, '--profile', 'work', '--region', 'eu-central-1'];

    it('writes a profile, changes nothing the second time, and takes it out again', async () => {
      mkdirSync(join(home.path, '.aws'));
      writeFileSync(config(), '[default]\nregion = eu-west-1\n');
      expect(await home.run([...SETUP, '--yes'])).toMatchObject({ status: 0, stderr: '' });
      const written = readFileSync(config(), 'utf8');
      expect(written).toBe(
        `[default]\nregion = eu-west-1\n# >>> svc aws >>>\n[profile work]\n` +
          `credential_process = ${home.program} aws credential-process --server ${app.baseUrl} --role ${ROLE} --region eu-central-1\n` +
          `region = eu-central-1\n# <<< svc aws <<<\n`,
      );
      for (const args of [SETUP, ['setup', 'aws']]) {
        expect((await home.run(args)).stdout).toMatch(/^Nothing to change\.$/m);
      }
      await run();
      const removed = await home.run(['setup', 'aws', '--remove', '--yes']);
      expect(removed.status).toBe(0);
      expect(readFileSync(config(), 'utf8')).toBe('[default]\nregion = eu-west-1\n');
      expect(cacheFiles()).toEqual([]);
    });

    it('writes the region of the shell, and says which profile has none', async () => {
      const setup = ['setup', 'aws', '--role', ROLE, '--profile', 'work', '--yes'];
      const bare = await home.run(setup);
      expect(bare.stdout).toContain('aws: the profile work has no region');
      expect(bare.stdout).toContain(`--role ${ROLE} --profile work --region eu-central-1`);
      const end = await home.run(setup, { env: { AWS_REGION: 'eu-west-3' } });
      expect(end.stdout).not.toContain('has no region');
      expect(readFileSync(config(), 'utf8')).toContain('\nregion = eu-west-3\n');
    });

    it('keeps a second profile beside the first, and refuses the name of one written by hand', async () => {
      mkdirSync(join(home.path, '.aws'));
      writeFileSync(config(), '[profile mine]\nregion = eu-west-1\n');
      await home.run([...SETUP, '--yes']);
      await home.run(['setup', 'aws', '--role', `${ROLE}-2`, '--yes']);
      const text = readFileSync(config(), 'utf8');
      expect(text.match(/^\[profile .+\]$/gm)).toEqual([
        '[profile mine]',
        '[profile work]',
        '[profile engineer-2]',
      ]);
      const end = await home.run(['setup', 'aws', '--role', ROLE, '--profile', 'mine', '--yes']);
      expect(end).toMatchObject({ status: 1 });
      expect(end.stderr).toContain('has a profile mine already');
      expect(readFileSync(config(), 'utf8')).toBe(text);
    });

    it('needs a role, and is left out of svc setup without one', async () => {
      const end = await home.run(['setup', 'aws', '--yes']);
      expect(end).toMatchObject({ status: 2 });
      expect(end.stderr).toContain('svc setup aws needs a role');
      expect((await home.run(['setup', '--yes'])).stdout).toContain('aws was left out');
    });

    requiresAws.describe('with the aws command', () => {
      it.each([...AWS_COMMANDS])(
        '%s gets the caller and the buckets by it, renews, and is refused after de-provisioning',
        async (_, program) => {
          await home.run([...SETUP, '--yes']);
          const aws = (...args: string[]) =>
            runProgram(program, ['--profile', 'work', '--endpoint-url', sts.url, ...args], {
              env: {
                ...home.env,
                AWS_ENDPOINT_URL: sts.url,
                AWS_EC2_METADATA_DISABLED: 'true',
              },
            });
          const caller = await aws('sts', 'get-caller-identity');
          expect(caller).toMatchObject({ status: 0, stderr: '' });
          const { Arn } = JSON.parse(caller.stdout);
          expect(Arn).toBe(
            `arn:aws:sts::123456789012:assumed-role/engineer/user-${people}@tools.example`,
          );
          const issued = sts.sessions.length;
          expect((await aws('s3', 'ls')).stdout).toContain('reports');
          expect(sts.sessions).toHaveLength(issued);
          endCacheIn(-1000);
          expect((await aws('s3', 'ls')).stdout).toContain('reports');
          expect(sts.sessions).toHaveLength(issued + 1);
          await deleteUser();
          endCacheIn(-1000);
          const refused = await aws('sts', 'get-caller-identity');
          expect(refused.status).not.toBe(0);
          expect(refused.stderr).toContain('svc: You are not logged in');
        },
      );
    });
  });
});
