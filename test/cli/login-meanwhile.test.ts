import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { requires } from '../support/programs.js';
import { SvcHome } from '../support/svc-command.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

requires('ssh-keygen').describe('an answer of the server that comes after another login', () => {
  let folder: string;
  let home: SvcHome;
  let tokens: (string | undefined)[] = [];
  let onRequest = () => {};
  const server = createServer((request, response) => {
    request.resume();
    const token = request.headers.authorization?.split(' ')[1];
    tokens.push(token);
    if (tokens.length === 1) onRequest();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ certificate: certificateOf(token ?? 'none') }));
  });
  const place = () => ({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    for (const name of ['ca', 'key']) keygen('-t', 'ed25519', '-N', '', '-f', join(folder, name));
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await removeDirectory(folder);
  });
  beforeEach(async () => {
    home = await SvcHome.create();
    tokens = [];
  });
  afterEach(() => home.remove());

  const keygen = (...args: string[]) => execFileSync('ssh-keygen', ['-q', ...args]);
  function certificateOf(token: string): string {
    const key = join(folder, 'key.pub');
    keygen('-s', join(folder, 'ca'), '-I', token, '-n', token, '-V', '-1m:+1h', key);
    return readFileSync(join(folder, 'key-cert.pub'), 'utf8').trim();
  }
  const logIn = (name: string) =>
    home.writeState(place(), 'token.json', {
      access_token: name,
      scope: 'svc:credentials',
      expires_at: '2100-01-01T00:00:00Z',
      user: { id: name },
    });

  it('is not stored: the certificate is that of the present login', async () => {
    logIn('ada');
    home.useServer(place());
    onRequest = () => logIn('bob');
    const end = await home.run(['ssh', 'check', 'target']);
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(tokens).toEqual(['ada', 'bob']);
    const stored = execFileSync('ssh-keygen', ['-L', '-f', home.state(place(), 'ssh/id-cert.pub')]);
    expect(stored.toString()).toContain('Key ID: "bob"');
  });
});
