import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Application } from '../support/applications.js';
import { newAddress } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import { guideBlock } from '../support/guide.js';
import { idOf, orgApi } from '../support/org-api.js';
import { DEBIAN_PYTHON, requires } from '../support/programs.js';
import { count } from '../support/rows.js';
import { signInTo } from '../support/signed-in-application.js';
import { newProgram, signalsOf, type StreamProgram } from '../support/signal-streams.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const NODE = guideBlock('signals/shared-signals.md', 'node');
const PYTHON = guideBlock('signals/shared-signals.md', 'python');
const SOON = { timeout: 90_000 };

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** A running program of the guide. `lines` returns its output so far. */
interface Running {
  readonly child: ChildProcess;
  readonly lines: () => readonly string[];
  stop(): Promise<void>;
}

/** Runs a program of the guide from a file in a folder of its own. */
async function run(
  program: string,
  [command, file]: readonly [string, string],
  env: Readonly<Record<string, string>>,
): Promise<Running> {
  const folder = await makeTemporaryDirectory();
  writeFileSync(join(folder, file), program);
  const child = spawn(command, [file], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, ISSUER: app.baseUrl, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  return {
    child,
    lines: () => output.split('\n'),
    stop: async () => {
      const ended = once(child, 'close');
      child.kill('SIGKILL');
      await ended;
      await removeDirectory(folder);
    },
  };
}

let organizations = 0;

/**
 * Makes an organization with an admin and an application. `signIn` adds a member and signs the
 * member in to the application.
 */
async function ground() {
  organizations += 1;
  const domain = `guide-signals-${organizations}.example`;
  const { client: admin } = await app.enrolled(`ada@${domain}`);
  const program = await newProgram(app, admin);
  const signIn = async () => {
    const { client } = await app.enrolled(`bob@${domain}`);
    await signInTo(app, client, program.application);
    return { client, userId: await idOf(app, `bob@${domain}`) };
  };
  return { admin, program, signIn };
}

const idsOf = ({ clientId, clientSecret }: Application) => ({
  CLIENT_ID: clientId,
  CLIENT_SECRET: clientSecret,
});

async function onlyStreamOf(program: StreamProgram): Promise<string> {
  const { json } = await program.send('GET', '/ssf/stream');
  return (json as [{ stream_id: string }])[0].stream_id;
}

describe('the receiver in Node of the guide', () => {
  it('takes the events of a person who logs out and is removed, and refuses others', async () => {
    const { admin, program, signIn } = await ground();
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/events`;
    const secret = 'Bearer of the guide';
    const env = { ...idsOf(program.application), PORT: String(port), AUTHORIZATION: secret };
    const running = await run(NODE, [process.execPath, 'receiver.mjs'], env);
    const answer = (authorization: string, body: string) =>
      fetch(url, { method: 'POST', headers: { authorization }, body }).then(
        ({ status }) => status,
        () => undefined,
      );
    while ((await answer('', '')) === undefined) {
      if (running.child.exitCode !== null) throw new Error(running.lines().join('\n'));
      await delay(20);
    }
    const stream = guideBlock('signals/shared-signals.md', 'stream', {
      'https://orders.example.com/events': url,
      'Bearer <a secret of your own>': secret,
    });
    const made = await program.send('POST', '/ssf/stream', JSON.parse(stream));
    expect(made.status).toBe(201);
    const { client, userId } = await signIn();
    await client.send('POST', '/logout', { address: newAddress() });
    await orgApi(admin, 'POST', `/members/${userId}/remove`);
    await expect.poll(() => running.lines(), SOON).toContain(`account-purged ${userId}`);
    expect(running.lines()).toContain(`session-revoked ${userId}`);
    const streamId = await onlyStreamOf(program);
    await expect.poll(() => signalsOf(app, streamId), SOON).toEqual([]);
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const claims = part({ iss: app.baseUrl, aud: program.application.clientId, events: {} });
    expect([
      await answer('', 'x'),
      await answer(secret, 'x'),
      await answer(secret, `${part({ alg: 'none', typ: 'secevent+jwt' })}.${claims}.`),
    ]).toEqual([401, 400, 400]);
    await running.stop();
  });
});

requires('python3-jwt').describe('the receiver in Python of the guide', () => {
  it('creates its stream, and takes and acknowledges the events of a person', async () => {
    const { admin, program, signIn } = await ground();
    const env = idsOf(program.application);
    const running = await run(PYTHON, [DEBIAN_PYTHON, 'receiver.py'], env);
    const { clientId } = program.application;
    await expect
      .poll(async () => {
        if (running.child.exitCode !== null) throw new Error(running.lines().join('\n'));
        return count(app.dataSource, 'signal_streams WHERE client_id = $1', [clientId]);
      }, SOON)
      .toBe(1);
    const { client, userId } = await signIn();
    await client.send('POST', '/logout', { address: newAddress() });
    await orgApi(admin, 'POST', `/members/${userId}/remove`);
    await expect.poll(() => running.lines(), SOON).toContain(`account-purged ${userId}`);
    expect(running.lines()).toContain(`session-revoked ${userId}`);
    const streamId = await onlyStreamOf(program);
    await expect.poll(() => signalsOf(app, streamId), SOON).toEqual([]);
    await running.stop();
  });
});

it('each receiver of the guide has 40 lines at most', () => {
  const lines = (text: string) => text.split('\n').filter((line) => line.trim() !== '').length;
  expect(lines(NODE)).toBeLessThanOrEqual(40);
  expect(lines(PYTHON)).toBeLessThanOrEqual(40);
});
