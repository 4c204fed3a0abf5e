import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { requires } from '../support/programs.js';
import { runProgram, SvcHome } from '../support/svc-command.js';

const ROLE = 'arn:aws:iam::123456789012:role/engineer';
const OTHER_ROLE = 'arn:aws:iam::999999999999:role/engineer';
const LIST = {
  ssh: [{ name: 'prod', hosts: ['*.prod.example.com'], logins: ['deploy'] }],
  aws: [{ name: 'Engineer', role_arn: ROLE, region: 'eu-central-1' }],
  kubernetes: [],
  github: [],
  applications: [{ name: 'Grafana', launch_url: null }],
  changed_at: '2026-11-25T20:00:00.000Z',
};

/**
 * A server that answers `GET /v1/setup` with a given status and body, as a broken or hostile server
 * could.
 */
class ListServer {
  status = 200;
  body = '';
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const isList = request.url === '/v1/setup';
      response.writeHead(isList ? this.status : 404, { 'content-type': 'application/json' });
      response.end(isList ? this.body : '{}');
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

requires('script').describe('svc setup with the list of the server', () => {
  let home: SvcHome;
  let server: ListServer;
  const file = (name: string) => {
    const path = join(home.path, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  };
  const setup = (...args: string[]) => home.run(['setup', ...args, '--yes']);
  const answer = (list: unknown) => (server.body = JSON.stringify(list));
  const expiresIn = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
  beforeEach(async () => {
    server = new ListServer();
    await server.start();
    answer(LIST);
    home = await SvcHome.create();
    home.useServer(server);
    home.writeState(server, 'token.json', {
      access_token: 'a-token',
      scope: 'svc:credentials',
      expires_at: expiresIn(3600),
      user: { id: 'test' },
    });
  });
  afterEach(async () => {
    server.close();
    await home.remove();
  });

  it('writes the hosts and roles of the list without an option, and nothing the second time', async () => {
    expect(await setup()).toMatchObject({ status: 0, stderr: '' });
    expect(file('.ssh/config')).toContain('Match originalhost "*.prod.example.com,');
    expect(file('.aws/config')).toContain('[profile Engineer]\n');
    expect(file('.aws/config')).toContain(`--role ${ROLE} --region eu-central-1\n`);
    expect(JSON.parse(file('.config/svc/config.json')).setup.access).toEqual({
      [server.baseUrl]: LIST.changed_at,
    });
    expect((await setup()).stdout).toMatch(/^Nothing to change\.$/m);
  });

  it('keeps what the options add, and takes out what left the list', async () => {
    await setup('ssh', '--host', 'own.example.com');
    await setup('aws', '--role', OTHER_ROLE, '--profile', 'own');
    answer({ ...LIST, ssh: [], aws: [], changed_at: '2026-11-25T21:00:00.000Z' });
    expect(await setup()).toMatchObject({ status: 0, stderr: '' });
    expect(file('.ssh/config')).toContain('Match originalhost "own.example.com,!');
    expect(file('.aws/config')).toContain('[profile own]\n');
    expect(file('.aws/config')).not.toContain('Engineer');
  });

  it('takes the last role out of every file that a setup wrote, and records none of them', async () => {
    const env = { AWS_CONFIG_FILE: join(home.path, 'own.ini') };
    const setups = () => JSON.parse(file('.config/svc/config.json')).setup;
    expect(await home.run(['setup', 'aws', '--yes'], { env })).toMatchObject({ status: 0 });
    expect(await setup('aws')).toMatchObject({ status: 0 });
    answer({ ...LIST, aws: [], changed_at: '2026-11-25T21:00:00.000Z' });
    const other = { AWS_CONFIG_FILE: join(home.path, 'other.ini') };
    const end = await home.run(['setup', 'aws', '--yes'], { env: other });
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect([file('own.ini'), file('.aws/config'), file('other.ini')]).toEqual(['', '', '']);
    expect(Object.keys(setups() ?? {}).filter((name) => name.startsWith('aws'))).toEqual([]);
  });

  it('leaves hosts out of one group or of the own patterns alone, and checks each host once', async () => {
    const groups = [
      { name: 'web', hosts: ['*.example.com', '!db.prod.example.com'], logins: ['deploy'] },
      { name: 'db', hosts: ['db.prod.example.com'], logins: ['postgres'] },
      { name: 'none', hosts: ['!only.example.com'], logins: ['x'] },
    ];
    answer({ ...LIST, ssh: groups });
    mkdirSync(join(home.path, '.ssh'), { mode: 0o700 });
    writeFileSync(join(home.path, '.ssh/config'), 'Host alias\n  HostName web.example.com\n');
    const own = ['--host', '*.own.example,!db.prod.example.com,!left-out.own.example'];
    expect(await setup('ssh', ...own)).toMatchObject({ status: 0, stderr: '' });
    const checks = join(home.path, 'checks');
    const counted = file('.ssh/config').replaceAll(/ exec "'.*' ('%[nh]')"$/gm, (_, host) => {
      return ` exec "echo ${host} >> '${checks}'"`;
    });
    const config = join(home.path, 'counted');
    writeFileSync(config, counted);
    const opened = async (host: string) => {
      writeFileSync(checks, '');
      const { stdout } = await runProgram('ssh', ['-G', '-F', config, host], { env: home.env });
      const files = stdout.split('\n').filter((line) => /^certificatefile .*\/hosts\//.test(line));
      return [
        file('checks').split('\n').filter(Boolean),
        files.map((line) => line.slice(line.lastIndexOf('/') + 1)),
      ];
    };
    const once = (host: string, token: string) => [[host], [`${token}.pub`]];
    expect(await opened('db.prod.example.com')).toEqual(once('db.prod.example.com', '%n'));
    expect(await opened('web.example.com')).toEqual(once('web.example.com', '%n'));
    expect(await opened('alias')).toEqual(once('web.example.com', '%h'));
    expect(await opened('a.own.example')).toEqual(once('a.own.example', '%n'));
    for (const host of ['left-out.own.example', 'elsewhere.test']) {
      expect(await opened(host)).toEqual([[], []]);
    }
    expect((await setup('ssh')).stdout).toMatch(/^Nothing to change\.$/m);
  });

  it('gives two roles of one name two profiles, and leaves a profile of the user alone', async () => {
    mkdirSync(join(home.path, '.aws'));
    writeFileSync(join(home.path, '.aws/config'), '[profile Engineer]\nregion = us-east-1\n');
    answer({
      ...LIST,
      aws: [...LIST.aws, { name: 'Engineer', role_arn: OTHER_ROLE, region: null }],
    });
    expect(await setup('aws')).toMatchObject({ status: 0, stderr: '' });
    const names = [...file('.aws/config').matchAll(/^\[profile (.+)\]$/gm)].map(([, name]) => name);
    expect(names).toEqual(['Engineer', 'svc-Engineer', 'Engineer-999999999999']);
    expect((await setup('aws')).stdout).toMatch(/^Nothing to change\.$/m);
  });

  it.each([
    ['a name with a line break', { aws: [{ ...LIST.aws[0], name: 'a]\n[default' }] }],
    ['a role with a line break', { aws: [{ ...LIST.aws[0], role_arn: `${ROLE}\nx = y` }] }],
    ['a role with a quote', { aws: [{ ...LIST.aws[0], role_arn: `${ROLE}";rm -rf /;"` }] }],
    ['a role with a substitution', { aws: [{ ...LIST.aws[0], role_arn: `${ROLE}$(id)` }] }],
    ['a region that is a host', { aws: [{ ...LIST.aws[0], region: 'evil.example/x' }] }],
    ['a region with an option', { aws: [{ ...LIST.aws[0], region: 'eu --server https://e' }] }],
    ['a pattern with a quote', { ssh: [{ ...LIST.ssh[0], hosts: ['a" exec "id'] }] }],
    ['a pattern with a line break', { ssh: [{ ...LIST.ssh[0], hosts: ['a\nProxyCommand id'] }] }],
    ['a pattern that is an option', { ssh: [{ ...LIST.ssh[0], hosts: ['-oProxyCommand=id'] }] }],
    ['an empty pattern', { ssh: [{ ...LIST.ssh[0], hosts: [''] }] }],
    ['a login with a space', { ssh: [{ ...LIST.ssh[0], logins: ['root x'] }] }],
    ['a name of a group with a slash', { ssh: [{ ...LIST.ssh[0], name: '../x' }] }],
    ['an owner that is a path', { github: [{ owner: '../../x' }] }],
    ['a cluster with a line break', { kubernetes: [{ name: 'p', resource: 'https://a\nb' }] }],
    ['a time that is none', { changed_at: 'now' }],
    ['text in place of a list', { ssh: 'all' }],
    ['null in place of an entry', { aws: [null] }],
    ['no list', { kubernetes: undefined }],
    ['1,001 entries', { github: Array.from({ length: 1001 }, () => ({ owner: 'o' })) }],
  ])('changes no file if the server lists %s', async (_, part) => {
    const config = file('.config/svc/config.json');
    answer({ ...LIST, ...part });
    const end = await setup();
    expect([end.status, end.stdout]).toEqual([1, '']);
    expect(end.stderr).toMatch(/^svc: 127\.0\.0\.1:\d+ |^svc: The AWS tools cannot run /);
    for (const name of ['.ssh/config', '.aws/config', '.gitconfig', '.kube/config']) {
      expect(file(name)).toBe('');
    }
    expect(file('.config/svc/config.json')).toBe(config);
  });

  it('makes a name of a role one of a profile, and never the default profile', async () => {
    const names = ['default', '../..; rm', 'a b/c', '生产', 'x'.repeat(300)];
    const roles = names.map((name, n) => ({ name, role_arn: `${ROLE}-${n}`, region: null }));
    answer({ ...LIST, aws: roles });
    expect(await setup('aws')).toMatchObject({ status: 0, stderr: '' });
    const sections = file('.aws/config').match(/^\[.*$/gm);
    expect(sections).toHaveLength(names.length);
    for (const section of sections ?? []) expect(section).toMatch(/^\[profile [\w.@:+-]{1,64}\]$/);
  });

  it('works by options at a server of the version before, which has no list', async () => {
    server.status = 404;
    answer({ code: 'not_found' });
    const end = await setup('ssh', '--host', '*.example.com');
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(file('.ssh/config')).toContain('"*.example.com,');
    const needed = await setup('aws');
    expect([needed.status, needed.stderr]).toEqual([2, expect.stringContaining('--role')]);
  });

  it('keeps the listed hosts and roles while the server fails, and says so', async () => {
    await setup();
    const before = [file('.ssh/config'), file('.aws/config')];
    server.status = 503;
    answer({ detail: 'Out of order.' });
    const end = await setup();
    expect([end.status, end.stdout]).toEqual([0, expect.stringContaining('Out of order.')]);
    expect([file('.ssh/config'), file('.aws/config')]).toEqual(before);
  });

  it('prints nothing that turns the direction of a text or controls the terminal', async () => {
    answer({ ...LIST, aws: [{ ...LIST.aws[0], name: 'a\u202eb' }] });
    const end = await setup('aws');
    expect(end.stdout).not.toContain('\u202e');
  });

  it('makes the changes of the list after one Enter', async () => {
    const end = await home.runInTerminal(['setup'], { input: '\n' });
    expect(end.status).toBe(0);
    expect(end.stdout).toContain('[Y/n]');
    expect(file('.aws/config')).toContain('Engineer');
  });
});
