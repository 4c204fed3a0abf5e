import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { CommandContext } from '../../packages/svc/src/command/command-context.js';
import { PrivateFolder } from '../../packages/svc/src/files/private-folder.js';
import { tokenFor, type GitToken } from '../../packages/svc/src/git/git-token.js';
import { DpopKey } from '../../packages/svc/src/server/dpop-key.js';
import { ServerClient } from '../../packages/svc/src/server/server-client.js';
import { readToken, writeToken } from '../../packages/svc/src/server/stored-token.js';
import { Terminal } from '../../packages/svc/src/terminal/terminal.js';
import { requires } from '../support/programs.js';
import { SvcHome } from '../support/svc-command.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

/** The URL of the GitHub for which the server issues tokens. */
const GITHUB = 'https://github.com';

requires('ssh-keygen').describe('an answer of the server that comes after another login', () => {
  let folder: string;
  let home: SvcHome;
  let tokens: (string | undefined)[] = [];
  let onRequest = () => {};
  /**
   * The access token for which the server answers that a new touch of the security key is needed.
   */
  let touchless: string | undefined;
  const server = createServer((request, response) => {
    request.resume();
    const token = request.headers.authorization?.split(' ')[1] ?? 'none';
    response.setHeader('content-type', 'application/json');
    if (request.method === 'GET') {
      const installations = [{ owner: 'octo-org' }];
      response.end(JSON.stringify({ configured: true, web_url: GITHUB, installations }));
      return;
    }
    tokens.push(token);
    if (tokens.length === 1) onRequest();
    if (token === touchless) {
      const challenge = 'DPoP error="insufficient_user_authentication", max_age="300"';
      response.writeHead(401, { 'www-authenticate': challenge }).end('{}');
      return;
    }
    const isForGit = request.url === '/v1/credentials/github/token';
    const issued = { token: `ghs_${token}`, expires_at: '2100-01-01T00:00:00Z' };
    response.end(JSON.stringify(isForGit ? issued : { certificate: certificateOf(token) }));
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
    [tokens, touchless] = [[], undefined];
  });
  afterEach(() => home.remove());

  const keygen = (...args: string[]) => execFileSync('ssh-keygen', ['-q', ...args]);
  function certificateOf(token: string): string {
    const key = join(folder, 'key.pub');
    keygen('-s', join(folder, 'ca'), '-I', token, '-n', token, '-V', '-1m:+1h', key);
    return readFileSync(join(folder, 'key-cert.pub'), 'utf8').trim();
  }
  const loginOf = (token: string) => ({
    access_token: token,
    scope: 'svc:credentials',
    expires_at: '2100-01-01T00:00:00Z',
    user: { id: token.split('-')[0] ?? '' },
  });
  const logIn = (token: string) => home.writeState(place(), 'token.json', loginOf(token));

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

  const gitFile = () => home.state(place(), 'git/octo-org/hello.json');
  const storedForGit = () => (JSON.parse(readFileSync(gitFile(), 'utf8')) as GitToken).token;

  it.each([
    ['of the same user', 'ada-2'],
    ['of another user', 'bob'],
  ])('is not stored, and git gets the token of the present login %s', async (_, next) => {
    logIn('ada-1');
    home.useServer(place());
    onRequest = () => logIn(next);
    const end = await home.run(['git', 'credential', 'get'], {
      input: 'protocol=https\nhost=github.com\npath=octo-org/hello.git\n',
    });
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(end.stdout).toContain(`password=ghs_${next}\n`);
    expect(tokens).toEqual(['ada-1', next]);
    expect(storedForGit()).toBe(`ghs_${next}`);
  });

  it('is stored if the request itself has renewed the login by a touch', async () => {
    logIn('ada-1');
    [onRequest, touchless] = [() => {}, 'ada-1'];
    const secrets = new PrivateFolder(home.state(place()));
    const client = new ServerClient({
      server: place().baseUrl,
      folder: secrets,
      terminal: new Terminal(false),
      dpopKey: await DpopKey.of(secrets),
      accessToken: () => readToken(secrets, 'token')?.access_token,
      stepUp: () => Promise.resolve(writeToken(secrets, 'token', loginOf('ada-2'))),
    });
    const context = { folder: () => secrets, client: () => Promise.resolve(client) };
    const target = { owner: 'octo-org', repository: 'hello' };
    const { token } = await tokenFor(context as unknown as CommandContext, target);
    expect([token, storedForGit()]).toEqual(['ghs_ada-2', 'ghs_ada-2']);
    expect(tokens).toEqual(['ada-1', 'ada-2']);
  });
});
