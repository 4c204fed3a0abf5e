import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Application } from '../support/applications.js';
import { newAddress, type Client } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import { guideBlock } from '../support/guide.js';
import { CALLBACK } from '../support/oauth-flow.js';
import { DEBIAN_PYTHON, requires } from '../support/programs.js';
import { count } from '../support/rows.js';
import { foundOrganization } from '../support/scim-organization.js';
import { noticesAbout, signInTo } from '../support/signed-in-application.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const SOON = { timeout: 90_000 };

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** A running receiver of a guide, and the application that it belongs to. */
interface Receiver {
  readonly url: string;
  readonly application: Application;
  readonly lines: () => readonly string[];
  stop(): Promise<void>;
}

/** Registers an application as the guide says, and runs the program of a page as its receiver. */
async function startReceiver(
  admin: Client,
  prepare: (folder: string) => readonly [string, ...string[]],
): Promise<Receiver> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const url = `${origin}/backchannel-logout`;
  const registration = guideBlock('signals/README.md', 'registration', {
    'https://orders.example.com/backchannel-logout': url,
    'https://orders.example.com/callback': CALLBACK,
  });
  const body = { ...JSON.parse(registration), auth_method: 'client_secret_post' };
  const made = await admin.post('/api/v1/applications', body, { address: newAddress() });
  expect([made.status, made.text]).toEqual([201, expect.any(String)]);
  const { client_id: clientId, client_secret: clientSecret } = made.json as Record<string, string>;
  const folder = await makeTemporaryDirectory();
  const [program, ...args] = prepare(folder);
  const env = { ISSUER: app.baseUrl, CLIENT_ID: clientId, PORT: String(port) };
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = outputOf(child);
  while (!(await answers(url, child, output))) await delay(20);
  return {
    url,
    application: { clientId: clientId ?? '', clientSecret: clientSecret ?? '' },
    lines: () => output().split('\n'),
    stop: async () => {
      const ended = once(child, 'close');
      child.kill('SIGKILL');
      await ended;
      await removeDirectory(folder);
    },
  };
}

function outputOf({ stdout, stderr }: ChildProcess): () => string {
  let output = '';
  for (const stream of [stdout, stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
  return () => output;
}

/**
 * Returns true if the receiver refuses a request without a token by status 400, because then it
 * runs. Throws if its process has ended.
 */
async function answers(url: string, child: ChildProcess, output: () => string): Promise<boolean> {
  if (child.exitCode !== null) throw new Error(`the receiver ended: ${output()}`);
  const answer = await fetch(url, { method: 'POST', body: new URLSearchParams({}) }).catch(
    () => undefined,
  );
  return answer?.status === 400;
}

let organizations = 0;

/** Declares the tests that the receiver program of each page must pass. */
function keepsItsPromises(prepare: (folder: string) => readonly [string, ...string[]]): void {
  let receiver: Receiver;
  let admin: Client;
  let scim: Awaited<ReturnType<typeof foundOrganization>>['scim'];
  let domain: string;
  beforeAll(async () => {
    organizations += 1;
    domain = `signals-${organizations}.example`;
    const organization = await foundOrganization(app, domain);
    ({ client: admin } = organization.admin);
    scim = organization.scim;
    receiver = await startReceiver(admin, prepare);
  });
  afterAll(() => receiver.stop());

  async function signedIn(name: string) {
    const userName = `${name}@${domain}`;
    const { json } = await scim('POST', '/Users', { userName });
    const { client } = await app.enrolled(userName);
    const { claims } = await signInTo(app, client, receiver.application);
    return { id: (json as { id: string }).id, client, sid: String(claims['sid']) };
  }

  it('ends the session of a person who logs out', async () => {
    const { client, sid, id } = await signedIn('bob');
    await client.send('POST', '/logout', { address: newAddress() });
    await expect.poll(() => receiver.lines(), SOON).toContain(`ended ${sid}`);
    await expect.poll(() => noticesAbout(app, id), SOON).toEqual([]);
  });

  it('ends the session, and all sessions, of a person whom SCIM removes', async () => {
    const { sid, id } = await signedIn('eve');
    expect((await scim('DELETE', `/Users/${id}`)).status).toBe(204);
    await expect.poll(() => receiver.lines(), SOON).toContain(`ended all of ${id}`);
    await expect.poll(() => receiver.lines(), SOON).toContain(`ended ${sid}`);
    await expect
      .poll(() => count(app.dataSource, 'logout_notices WHERE user_id = $1', [id]), SOON)
      .toBe(0);
  });

  it('refuses a token without a signature, one that is none, and nothing', async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const { clientId } = receiver.application;
    const claims = { iss: app.baseUrl, aud: clientId, sub: 'x', jti: 'x', iat: 1, exp: 9e9 };
    const unsigned = `${part({ alg: 'none', typ: 'logout+jwt' })}.${part(claims)}.`;
    for (const token of [unsigned, 'x', '']) {
      const body = new URLSearchParams({ logout_token: token });
      expect((await fetch(receiver.url, { method: 'POST', body })).status).toBe(400);
    }
  });
}

describe('the receiver in Node of the guide', () => {
  keepsItsPromises((folder) => {
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'receiver.mjs'), guideBlock('signals/node-receiver.md', 'node'));
    return [process.execPath, 'receiver.mjs'];
  });
});

requires('python3-jwt').describe('the receiver in Python of the guide', () => {
  keepsItsPromises((folder) => {
    writeFileSync(join(folder, 'receiver.py'), guideBlock('signals/python-receiver.md', 'python'));
    return [DEBIAN_PYTHON, 'receiver.py'];
  });
});

it('each receiver of the guides has 40 lines at most', () => {
  const lines = (text: string) => text.split('\n').filter((line) => line.trim() !== '').length;
  expect(lines(guideBlock('signals/node-receiver.md', 'node'))).toBeLessThanOrEqual(40);
  expect(lines(guideBlock('signals/python-receiver.md', 'python'))).toBeLessThanOrEqual(40);
});
