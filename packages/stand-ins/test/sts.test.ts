import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listenOnLoopback, stopServer } from '../src/loopback/loopback-server.js';
import { startSts, type RunningSts } from '../src/sts/sts-server.js';

const NOW = 1_795_600_000;
const AUDIENCE = 'sts.amazonaws.com';
const ROLE = 'arn:aws:iam::123456789012:role/deploy';
const clock = { now: () => new Date(NOW * 1000), seconds: () => NOW };

let issuer: string;
let publisher: Server;
let sts: RunningSts;
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

/** Signs a token of the issuer for the stand-in. `expires` is in seconds since 1970. */
function tokenOf(subject: string, expires = NOW + 60): Promise<string> {
  return new SignJWT({ sub: subject, aud: AUDIENCE, iss: issuer, iat: NOW, exp: expires })
    .setProtectedHeader({ alg: 'RS256', kid: 'one' })
    .sign(privateKey);
}

/** Requests the credentials of the role from the stand-in, with a token. */
async function assumeRole(token: string): Promise<{ status: number; text: string }> {
  const body = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: ROLE,
    RoleSessionName: 'ada',
    WebIdentityToken: token,
  });
  const response = await fetch(sts.url, { method: 'POST', body });
  return { status: response.status, text: await response.text() };
}

beforeAll(async () => {
  publisher = createServer((request, response) => {
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'one' };
    const isKeys = request.url === '/keys';
    const document = isKeys ? { keys: [jwk] } : { issuer, jwks_uri: `${issuer}/keys` };
    response.end(JSON.stringify(document));
  });
  issuer = `http://127.0.0.1:${await listenOnLoopback(publisher)}`;
  const trusts = (subject: string) => subject === 'ada';
  sts = await startSts({
    provider: { issuer, audiences: [AUDIENCE] },
    roles: [{ arn: ROLE, trusts }],
    clock,
  });
});
afterAll(async () => {
  await sts.close();
  await stopServer(publisher);
});

describe('the stand-in of STS', () => {
  it('gives a session of a role to a subject that the role trusts', async () => {
    const { status, text } = await assumeRole(await tokenOf('ada'));
    expect(status).toBe(200);
    const arn = 'arn:aws:sts::123456789012:assumed-role/deploy/ada';
    expect(sts.sessions.at(-1)).toMatchObject({ arn, expiresAt: new Date((NOW + 3600) * 1000) });
    expect(text).toContain(`<Arn>${arn}</Arn>`);
  });

  it.each([
    ['another subject', 'AccessDenied', () => tokenOf('eve')],
    ['an expired token', 'ExpiredTokenException', () => tokenOf('ada', NOW - 1)],
    ['a token that is changed', 'InvalidIdentityToken', async () => `${await tokenOf('ada')}AA`],
    ['a text that is no token', 'InvalidIdentityToken', async () => 'token'],
  ])('refuses %s with %s', async (_, code, token) => {
    const before = sts.sessions.length;
    const { text } = await assumeRole(await token());
    expect(text).toContain(`<Code>${code}</Code>`);
    expect(sts.sessions).toHaveLength(before);
  });

  it('refuses a request that no session signed', async () => {
    const response = await fetch(sts.url);
    expect(response.status).toBe(403);
    expect(await response.text()).toContain('<Code>MissingAuthenticationToken</Code>');
  });
});
