import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { allowAll, startGitHubApplication, type GitHubApplication } from '../support/github.js';
import type { EnrolledUser } from '../support/app.js';
import { requires } from '../support/programs.js';
import { commandWords, runProgram, SvcHome, type RunOptions } from '../support/svc-command.js';
import { CliFailure } from '../../packages/svc/src/program/failure.js';
import '../support/full-scale-only.js';

it('a failure in one line has the next step, and ends with the message if there is none', () => {
  expect(new CliFailure('It failed.', 'Run: svc login').line).toBe('It failed; Run: svc login');
  expect(new CliFailure('Give a name.', '').line).toBe('Give a name.');
});

requires('git').describe('git with the helper that svc setup wrote', () => {
  let running: GitHubApplication;
  let ada: EnrolledUser & { readonly id: string };
  let home: SvcHome;
  let users = 0;
  beforeAll(async () => {
    running = await startGitHubApplication();
    await allowAll(running.organization.admin.client, false);
    for (const name of ['hello', 'world']) running.github.addRepository('octo-org', name);
  });
  afterAll(() => running.close());
  beforeEach(async () => {
    users += 1;
    ada = await running.member(`ada-${users}@octo.example`);
    home = await SvcHome.create();
    await home.logIn(running.app, ada);
    writeFileSync(
      gitconfig(),
      '[user]\n\tname = Ada\n\temail = ada@octo.example\n[init]\n\tdefaultBranch = main\n',
    );
    const set = await home.run(['setup', 'git', '--yes']);
    if (set.status !== 0) throw new Error(`svc setup git failed: ${set.stderr}`);
  });
  afterEach(() => home.remove());

  const gitconfig = () => join(home.path, '.gitconfig');
  const tokenFile = (name: string) => home.state(running.app, `git/octo-org/${name}.json`);
  const env = () => ({ ...home.env, GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_NOSYSTEM: '1' });
  const git = (args: readonly string[], options: RunOptions = {}) =>
    runProgram('git', args, { cwd: home.path, env: env(), ...options });
  const address = (name: string) => `${running.github.url}/octo-org/${name}.git`;
  const minted = () => running.github.state.tokens;
  const credential = (action: string, lines: Record<string, string>) =>
    home.run(['git', 'credential', action], {
      input: Object.entries(lines)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    });
  const asked = (path: string) => {
    const { protocol, host } = new URL(running.github.url);
    return { protocol: protocol.slice(0, -1), host, path };
  };

  it('clones and pushes over smart HTTP, with one token for the one repository', async () => {
    const before = minted().length;
    expect(await git(['clone', '-q', address('hello'), 'work'])).toMatchObject({ status: 0 });
    const work = { cwd: join(home.path, 'work') };
    writeFileSync(join(home.path, 'work/file'), `written by ${ada.id}\n`);
    for (const args of [
      ['add', 'file'],
      ['commit', '-qm', 'feat: write a file'],
      ['push', '-q', 'origin', 'HEAD:main'],
    ]) {
      expect(await git(args, work)).toMatchObject({ status: 0 });
    }
    expect(await git(['clone', '-q', address('hello'), 'again'])).toMatchObject({ status: 0 });
    expect(readFileSync(join(home.path, 'again/file'), 'utf8')).toContain(ada.id);
    expect(minted().slice(before)).toMatchObject([
      { repositories: ['hello'], permissions: { contents: 'write', metadata: 'read' } },
    ]);
  });

  it('is refused by the server of git without the helper, and with a token of another repository', async () => {
    await home.run(['setup', 'git', '--remove', '--yes']);
    expect((await git(['ls-remote', address('hello')])).status).not.toBe(0);
    const other = minted().find(({ repositories }) => repositories?.includes('hello'));
    const url = new URL(address('world'));
    url.username = 'x-access-token';
    url.password = other?.token ?? '';
    expect((await git(['ls-remote', url.href])).status).not.toBe(0);
  });

  it('keeps the token with mode 0600 and asks the server again 10 minutes before its end', async () => {
    await credential('get', asked('octo-org/world.git'));
    expect(statSync(tokenFile('world')).mode & 0o777).toBe(0o600);
    const before = minted().length;
    const cached = await credential('get', asked('octo-org/world'));
    expect(cached.stdout).toContain(`password=${minted().at(-1)?.token}\n`);
    expect(cached.stdout).toMatch(/^username=x-access-token$/m);
    expect(minted()).toHaveLength(before);
    const soon = new Date(Date.now() + 9 * 60_000).toISOString();
    writeFileSync(tokenFile('world'), JSON.stringify({ token: 'old', expires_at: soon }));
    await credential('get', asked('octo-org/world'));
    expect(minted()).toHaveLength(before + 1);
  });

  it('renews once when ten processes ask at the same moment', async () => {
    const before = minted().length;
    const ends = await Promise.all(
      Array.from({ length: 10 }, () => credential('get', asked('octo-org/world.git'))),
    );
    expect(new Set(ends.map(({ stdout }) => stdout)).size).toBe(1);
    expect(minted()).toHaveLength(before + 1);
  });

  it('forgets a refused token, and git gets a new one by itself the next time', async () => {
    await git(['ls-remote', address('world')]);
    const refused = minted().at(-1);
    if (refused) refused.revoked = true;
    expect((await git(['ls-remote', address('world')])).status).not.toBe(0);
    expect(existsSync(tokenFile('world'))).toBe(false);
    expect(await git(['ls-remote', address('world')])).toMatchObject({ status: 0 });
  });

  it.each([
    { protocol: 'https', host: 'github.com', path: 'octo-org/hello.git' },
    { protocol: 'https', host: '127.0.0.1', path: 'octo-org/hello.git' },
    { protocol: 'ssh', path: 'octo-org/hello.git' },
    { path: 'octo-org/../../hello.git' },
    { path: 'octo-org/hello/world' },
  ])('says nothing for %j', async (lines) => {
    const before = minted().length;
    const end = await credential('get', { ...asked(''), ...lines });
    expect(end).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(minted()).toHaveLength(before);
  });

  it('asks for no token where git names no repository, says in one line what to run, and that mends the set-up', async () => {
    const before = minted().length;
    const end = await credential('get', asked(''));
    expect(end).toMatchObject({ status: 1, stdout: 'quit=1\n' });
    expect(end.stderr.trim().split('\n')).toEqual([
      'svc: git did not name the repository; Run: svc setup git',
    ]);
    const older = readFileSync(gitconfig(), 'utf8').replace(/\tuseHttpPath = true\n/, '');
    writeFileSync(gitconfig(), older);
    const refused = await git(['ls-remote', address('hello')]);
    expect(refused.stderr).toContain('svc setup git');
    expect([refused.status === 0, minted().length]).toEqual([false, before]);
    expect((await home.run(['setup', 'git', '--yes'])).status).toBe(0);
    expect(readFileSync(gitconfig(), 'utf8')).toContain('useHttpPath = true');
    expect(await git(['ls-remote', address('hello')])).toMatchObject({ status: 0 });
    expect(minted().slice(before)).toMatchObject([{ repositories: ['hello'] }]);
  });

  it('store keeps nothing, and erase needs no network', async () => {
    const lines = {
      ...asked('octo-org/hello.git'),
      username: 'x-access-token',
      password: 'stored',
    };
    expect(await credential('store', lines)).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(existsSync(tokenFile('hello'))).toBe(false);
    await credential('get', asked('octo-org/hello.git'));
    expect((await credential('erase', lines)).status).toBe(0); // not the stored password
    expect(existsSync(tokenFile('hello'))).toBe(true);
    await credential('erase', { ...lines, password: minted().at(-1)?.token ?? '' });
    expect(existsSync(tokenFile('hello'))).toBe(false);
  });

  it('says in one line that the login is over, and git asks no other helper', async () => {
    rmSync(home.state(running.app, 'token.json'));
    const end = await credential('get', asked('octo-org/hello.git'));
    expect(end).toMatchObject({ status: 3, stdout: 'quit=1\n' });
    expect(end.stderr.trim().split('\n')).toHaveLength(1);
    expect(end.stderr).toContain('svc login');
    expect((await git(['ls-remote', address('hello')])).stderr).toContain('svc login');
  });

  it('says in one line what GitHub or the server refuses', async () => {
    running.installation.suspended_at = new Date().toISOString();
    const suspended = await credential('get', asked('octo-org/hello.git'));
    running.installation.suspended_at = null;
    expect(suspended).toMatchObject({ status: 4, stdout: 'quit=1\n' });
    expect(suspended.stderr.trim().split('\n')).toHaveLength(1);
    const foreign = await credential('get', asked('other-org/hello.git'));
    expect(foreign).toMatchObject({ status: 4, stdout: '' });
  });

  it('loses its access when SCIM deletes the user: the next fetch is refused', async () => {
    expect(await git(['ls-remote', address('hello')])).toMatchObject({ status: 0 });
    const { token = '' } = minted().at(-1) ?? {};
    const deleted = await running.organization.scim('DELETE', `/Users/${ada.id}`);
    expect(deleted.status).toBe(204);
    await expect.poll(() => running.github.state.liveToken(token)).toBeUndefined();
    expect((await git(['ls-remote', address('hello')])).status).not.toBe(0);
    const again = await git(['ls-remote', address('hello')]);
    expect(again.stderr).toContain('svc login');
  });

  it('writes its lines once, keeps the lines of the user, and takes its own out again', async () => {
    const written = readFileSync(gitconfig(), 'utf8');
    expect(written).toContain('useHttpPath = true');
    const twice = await home.run(['setup', 'git', '--yes']);
    expect(twice.stdout).toContain('Nothing to change');
    expect(readFileSync(gitconfig(), 'utf8')).toBe(written);
    await home.run(['setup', 'git', '--remove', '--yes']);
    expect(readFileSync(gitconfig(), 'utf8')).toBe(
      '[user]\n\tname = Ada\n\temail = ada@octo.example\n[init]\n\tdefaultBranch = main\n',
    );
  });

  it('works from a folder whose name has spaces and quotes', async () => {
    const folder = join(home.path, "my 'own' tools");
    mkdirSync(folder);
    writeFileSync(join(folder, 'svc'), readFileSync(home.program), { mode: 0o755 });
    const [program, ...first] = commandWords(join(folder, 'svc'));
    const set = await runProgram(program, [...first, 'setup', 'git', '--yes'], { env: home.env });
    expect(set).toMatchObject({ status: 0 });
    expect(await git(['ls-remote', address('hello')])).toMatchObject({ status: 0 });
  });
});
