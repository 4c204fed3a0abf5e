import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Client } from '../support/client.js';
import { receiverApi } from '../support/event-receivers.js';
import { freePort } from '../support/free-port.js';
import { guideBlock } from '../support/guide.js';
import { orgApi } from '../support/org-api.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const SOON = { timeout: 90_000 };

describe('the receiver of the guide', () => {
  let app: TestApp;
  let ada: Client;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled('ada@siem-guide.example'));
  });
  afterAll(() => app.close());

  it('takes the events of the types that the guide names, and refuses what the service did not sign', async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/events`;
    const body = JSON.parse(
      // The receiver of the test replaces the URL of the guide.
      guideBlock('siem/README.md', 'receiver', { 'https://siem.example.com/events': url }),
    ) as object;
    const made = await orgApi(ada, 'POST', '/event-receivers', body);
    expect([made.status, made.text]).toEqual([201, expect.any(String)]);
    const { id, secret } = made.json as { id: string; secret: string };

    const folder = await makeTemporaryDirectory();
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'receiver.mjs'), guideBlock('siem/README.md', 'node'));
    const child = spawn(process.execPath, ['receiver.mjs'], {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', SECRET: secret, PORT: String(port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    const forged = () =>
      fetch(url, { method: 'POST', body: '{}' }).then(
        ({ status }) => status,
        () => undefined,
      );
    try {
      await expect.poll(forged, SOON).toBe(401);
      expect((await receiverApi(ada, 'POST', { id }, '/test')).status).toBe(204);
      await expect
        .poll(() => output.split('\n').map((line) => line.split(' ')[0]), SOON)
        .toEqual(['event_receiver_created', 'event_receiver_tested', '']);
    } finally {
      const ended = once(child, 'close');
      child.kill('SIGKILL');
      await ended;
      await removeDirectory(folder);
    }
  });
});
