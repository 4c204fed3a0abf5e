import { execFile } from 'node:child_process';
import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer } from 'node:http';
import { promisify } from 'node:util';
import { calculateJwkThumbprint, decodeJwt, decodeProtectedHeader, exportJWK, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { startSts, type RunningSts } from '@svc/stand-ins/sts';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { AWS_COMMANDS, requiresAws } from '../support/aws-command.js';
import { TestClock } from '../support/test-clock.js';

const exec = promisify(execFile);
const ROLE = 'arn:aws:iam::123456789012:role/team/engineer';
const ROLES = 'https://aws.amazon.com/roles';
const pemOf = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString();

describe('a stand-in that verifies as IAM does', () => {
  /**
   * The test has the private keys of the service, so that it can sign tokens that the service never
   * issues.
   */
  const rsa = generateKeyPairSync('rsa', { modulusLength: 3072 });
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const foreign = generateKeyPairSync('rsa', { modulusLength: 3072 });
  const clock = new TestClock(Date.now());
  let app: TestApp;
  let sts: RunningSts;
  let client: Client;
  let token: string;
  beforeAll(async () => {
    app = await startTestApp({
      environment: {
        SVC_OIDC_RSA_SIGNING_KEY: pemOf(rsa.privateKey),
        SVC_OIDC_SIGNING_KEY: pemOf(ec.privateKey),
      },
    });
    ({ client } = await app.enrolled('ada@iam.example'));
    sts = await startSts({
      provider: { issuer: app.baseUrl, audiences: ['another', 'sts.amazonaws.com'] },
      roles: [
        { arn: `${ROLE}-closed`, trusts: () => true, demandsRoleClaim: true },
        { arn: ROLE, trusts: (subject) => subject.endsWith('@iam.example') },
        {
          arn: `${ROLE}-untagged`,
          trusts: () => true,
          actions: ['sts:AssumeRoleWithWebIdentity', 'sts:SetSourceIdentity'],
        },
      ],
      buckets: ['reports'],
      clock,
    });
    const body = { role_arn: ROLE };
    token = (await client.post('/v1/credentials/aws/token', body, { address: newAddress() })).json
      .id_token;
  });
  afterAll(async () => {
    await sts.close();
    await app.close();
  });

  /**
   * Requests a role session for a token from the STS stand-in. Returns the HTTP status and the XML.
   */
  async function assume(webIdentity: string, changes: Readonly<Record<string, string>> = {}) {
    const response = await fetch(sts.url, {
      method: 'POST',
      body: new URLSearchParams({
        Action: 'AssumeRoleWithWebIdentity',
        Version: '2011-06-15',
        RoleArn: ROLE,
        RoleSessionName: 'ada@iam.example',
        WebIdentityToken: webIdentity,
        ...changes,
      }),
    });
    const xml = await response.text();
    return { status: response.status, xml, code: /<Code>(.*?)<\/Code>/.exec(xml)?.[1] };
  }
  const textIn = (xml: string, name: string) =>
    new RegExp(`<${name}>(.*?)</${name}>`).exec(xml)?.[1];
  /**
   * Signs the claims of the genuine token with changes to them, by a key, algorithm and key id of
   * choice.
   */
  async function signed(
    changes: Readonly<Record<string, unknown>>,
    {
      key = rsa.privateKey,
      alg = 'RS256',
      kid,
    }: { key?: KeyObject; alg?: string; kid?: string } = {},
  ): Promise<string> {
    const header = { ...decodeProtectedHeader(token), alg, ...(kid === undefined ? {} : { kid }) };
    return new SignJWT({ ...decodeJwt(token), ...changes }).setProtectedHeader(header).sign(key);
  }

  it('accepts a token of the service, and gives the role to its user by name and tags', async () => {
    const { status, xml } = await assume(token, { DurationSeconds: '900' });
    expect(status).toBe(200);
    expect(textIn(xml, 'SubjectFromWebIdentityToken')).toBe('ada@iam.example');
    expect(textIn(xml, 'Audience')).toBe('sts.amazonaws.com');
    expect(textIn(xml, 'Provider')).toBe(app.baseUrl);
    expect(textIn(xml, 'SourceIdentity')).toBe('ada@iam.example');
    expect(textIn(xml, 'Arn')).toBe(
      'arn:aws:sts::123456789012:assumed-role/engineer/ada@iam.example',
    );
    expect(sts.sessions.at(-1)?.tags).toMatchObject({ email: 'ada@iam.example' });
  });

  const now = Math.floor(Date.now() / 1000);
  const ecKeyId = async () => calculateJwkThumbprint(await exportJWK(ec.publicKey));
  it.each<readonly [string, string, () => Promise<string> | string]>([
    ['no signature', 'InvalidIdentityToken', () => `${token.split('.').slice(0, 2).join('.')}.`],
    [
      'alg none',
      'InvalidIdentityToken',
      () => `${encode({ alg: 'none', kid: 'x' })}.${token.split('.')[1]}.`,
    ],
    [
      'HS256 with the public key as its secret',
      'InvalidIdentityToken',
      () => {
        const text = `${encode({ ...decodeProtectedHeader(token), alg: 'HS256' })}.${token.split('.')[1]}`;
        const secret = createPublicKey(rsa.privateKey).export({ type: 'spki', format: 'pem' });
        return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
      },
    ],
    ['RS512 by the same key', 'InvalidIdentityToken', () => signed({}, { alg: 'RS512' })],
    [
      'the ES256 key of the service',
      'InvalidIdentityToken',
      async () => signed({}, { key: ec.privateKey, alg: 'ES256', kid: await ecKeyId() }),
    ],
    [
      'RS256 in the header with the id of the ES256 key',
      'InvalidIdentityToken',
      async () => signed({}, { kid: await ecKeyId() }),
    ],
    ['an unknown key id', 'InvalidIdentityToken', () => signed({}, { kid: 'unknown' })],
    [
      'a foreign key under the genuine id',
      'InvalidIdentityToken',
      () => signed({}, { key: foreign.privateKey }),
    ],
    [
      'a changed payload',
      'InvalidIdentityToken',
      () => {
        const [head, , signature] = token.split('.');
        return `${head}.${encode({ ...decodeJwt(token), sub: 'root@iam.example' })}.${signature}`;
      },
    ],
    ['another audience', 'InvalidIdentityToken', () => signed({ aud: 'an-application' })],
    ['another authorized party', 'InvalidIdentityToken', () => signed({ azp: 'an-application' })],
    ['another issuer', 'InvalidIdentityToken', () => signed({ iss: 'https://evil.example' })],
    ['a slash behind the issuer', 'InvalidIdentityToken', () => signed({ iss: `${app.baseUrl}/` })],
    ['no subject', 'InvalidIdentityToken', () => signed({ sub: undefined })],
    ['an end in the past', 'ExpiredTokenException', () => signed({ exp: now - 1 })],
    ['a beginning in the future', 'InvalidIdentityToken', () => signed({ nbf: now + 3600 })],
    ['an issuance in the future', 'InvalidIdentityToken', () => signed({ iat: now + 3600 })],
    ['20,001 characters', 'InvalidIdentityToken', () => signed({ more: 'x'.repeat(20_000) })],
    [
      'a source identity with a space',
      'ValidationError',
      () => signed({ 'https://aws.amazon.com/source_identity': 'ada lovelace' }),
    ],
    [
      'a session tag of 257 characters',
      'ValidationError',
      () =>
        signed({ 'https://aws.amazon.com/tags': { principal_tags: { team: ['x'.repeat(257)] } } }),
    ],
  ])('refuses a token with %s: %s', async (_, code, make) => {
    const before = sts.sessions.length;
    expect(await assume(await make())).toMatchObject({
      status: 400,
      code,
      xml: expect.stringContaining('<Type>Sender</Type>'),
    });
    expect(sts.sessions).toHaveLength(before);
  });

  it.each([
    ['a session name with a space', { RoleSessionName: 'ada lovelace' }, 'ValidationError'],
    ['a session name of one character', { RoleSessionName: 'a' }, 'ValidationError'],
    ['899 seconds', { DurationSeconds: '899' }, 'ValidationError'],
    ['more than the role allows', { DurationSeconds: '3601' }, 'ValidationError'],
    ['an ARN of a user', { RoleArn: 'arn:aws:iam::123456789012:user/ada' }, 'ValidationError'],
    ['an unknown role', { RoleArn: `${ROLE}-unknown` }, 'AccessDenied'],
    ['a role that the token does not name', { RoleArn: `${ROLE}-untagged` }, 'AccessDenied'],
    ['another version of the API', { Version: '2010-01-01' }, 'InvalidAction'],
  ])('refuses %s', async (_, changes, code) => {
    expect((await assume(token, changes)).code).toBe(code);
  });

  it('takes the claim of roles as an allow-list of exact ARNs, whatever the trust policy says', async () => {
    const others = [`${ROLE}-closed`, `${ROLE}*`, ROLE.toUpperCase()];
    const wrong = await signed({ [ROLES]: others });
    expect(await assume(wrong)).toMatchObject({ status: 403, code: 'AccessDenied' });
    const right = await signed({ [ROLES]: [...others, ROLE] });
    expect((await assume(right)).status).toBe(200);
    expect((await assume(await signed({ [ROLES]: ROLE }))).code).toBe('InvalidIdentityToken');
    expect((await assume(await signed({ [ROLES]: [] }))).code).toBe('InvalidIdentityToken');
  });

  it('refuses a token without the claim to a role with the key sts:RoleAuthorizedByIdp', async () => {
    const bare = await signed({ [ROLES]: undefined });
    expect((await assume(bare)).status).toBe(200);
    const closed = { RoleArn: `${ROLE}-closed` };
    expect(await assume(bare, closed)).toMatchObject({ status: 403, code: 'AccessDenied' });
    const named = await signed({ [ROLES]: [`${ROLE}-closed`] });
    expect((await assume(named, closed)).status).toBe(200);
  });

  it('refuses a role without sts:TagSession to a token that carries tags', async () => {
    const named = await signed({ [ROLES]: [`${ROLE}-untagged`] });
    expect((await assume(named, { RoleArn: `${ROLE}-untagged` })).code).toBe('AccessDenied');
  });

  it('refuses a user that the role does not trust', async () => {
    const { client: eve } = await app.enrolled('eve@other.example');
    const { id_token } = (await eve.post('/v1/credentials/aws/token', {})).json;
    expect(await assume(id_token)).toMatchObject({ status: 403, code: 'AccessDenied' });
  });

  it('says IDPCommunicationError where the issuer does not answer as one', async () => {
    const server = createServer((_, response) => response.end('{}'));
    const port = await listenOnLoopback(server);
    const issuer = `http://127.0.0.1:${port}`;
    const lost = await startSts({ provider: { issuer, audiences: [] }, roles: [] });
    try {
      const response = await fetch(lost.url, {
        method: 'POST',
        body: new URLSearchParams({
          Action: 'AssumeRoleWithWebIdentity',
          Version: '2011-06-15',
          RoleArn: ROLE,
          RoleSessionName: 'ada',
          WebIdentityToken: await signed({ iss: issuer }),
        }),
      });
      expect(await response.text()).toContain('<Code>IDPCommunicationError</Code>');
    } finally {
      await lost.close();
      await stopServer(server);
    }
  });

  requiresAws.describe('with the aws command', () => {
    /**
     * Runs the AWS command-line program with the credentials of a role session. Returns its output.
     */
    async function aws(
      program: string,
      session: (typeof sts.sessions)[number] | undefined,
      ...args: string[]
    ) {
      const { stdout } = await exec(program, ['--endpoint-url', sts.url, ...args], {
        env: {
          PATH: process.env['PATH'],
          AWS_ACCESS_KEY_ID: session?.accessKeyId,
          AWS_SECRET_ACCESS_KEY: session?.secretAccessKey,
          AWS_SESSION_TOKEN: session?.sessionToken,
          AWS_DEFAULT_REGION: 'eu-central-1',
          AWS_CONFIG_FILE: '/dev/null',
          AWS_EC2_METADATA_DISABLED: 'true',
        },
      });
      return stdout;
    }

    it.each([...AWS_COMMANDS])(
      '%s: knows a role session by its signature, and refuses a wrong key and an expired session',
      async (_, program) => {
        await assume(token);
        const session = sts.sessions.at(-1);
        const whoAmI = ['sts', 'get-caller-identity'];
        expect(JSON.parse(await aws(program, session, ...whoAmI))).toEqual({
          Account: '123456789012',
          Arn: session?.arn,
          UserId: session?.userId,
        });
        expect(await aws(program, session, 's3', 'ls')).toContain('reports');
        const wrong = session && { ...session, secretAccessKey: 'another' };
        await expect(aws(program, wrong, ...whoAmI)).rejects.toThrow('SignatureDoesNotMatch');
        await expect(aws(program, wrong, 's3', 'ls')).rejects.toThrow('SignatureDoesNotMatch');
        clock.advance(3_601_000);
        await expect(aws(program, session, ...whoAmI)).rejects.toThrow('ExpiredToken');
        clock.advance(-3_601_000);
      },
    );
  });
});

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
