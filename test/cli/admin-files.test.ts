import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WholeLines } from '../../packages/svc/src/admin/exports/whole-lines.js';
import { SvcHome } from '../support/svc-command.js';

/** A response that the test's server gives to one request. */
interface Reply {
  readonly status?: number;
  readonly type?: string;
  readonly text: string;
  /** True if the server closes the connection before the response is complete. */
  readonly isCut?: boolean;
}

const REFUSED: Reply = {
  status: 403,
  type: 'application/problem+json',
  text: JSON.stringify({ code: 'admin_required', detail: 'Only an admin can do this.' }),
};

let replies: Reply[] = [];
let asked: URL[] = [];
let home: SvcHome;
let folder: string;
const server = createServer((request, response) => {
  asked.push(new URL(String(request.url), 'http://x'));
  const { status = 200, type = 'text/csv', text, isCut } = replies.shift() ?? REFUSED;
  response.writeHead(status, { 'content-type': type });
  if (isCut) response.write(text, () => setImmediate(() => response.destroy()));
  else response.end(text);
});

beforeAll(() => new Promise<void>((done) => server.listen(0, '127.0.0.1', done)));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(async () => {
  home = await SvcHome.create();
  const place = { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  home.writeState(place, 'admin-token.json', {
    access_token: 'x',
    scope: 'svc:admin',
    expires_at: '2100-01-01T00:00:00Z',
    user: { id: 'a' },
  });
  home.useServer(place);
  folder = join(home.path, 'files');
  mkdirSync(folder);
  asked = [];
});
afterEach(() => home.remove());

const admin = (...args: string[]) => home.run(['admin', ...args], { cwd: folder });
const afters = () => asked.map(({ searchParams }) => searchParams.get('after'));

const HEADER = 'member_id,email,key_id\r\n';
const line = (n: number) => `"m${n}","a ""quoted"",\r\nname é","k${n}"\r\n`;
const json = (n: number) => `${JSON.stringify({ id: `m${n}`, name: 'a "quoted" name' })}\n`;
const NDJSON = 'application/x-ndjson';

describe('the whole lines of an answer', () => {
  it('are the same wherever the answer is divided or ends', () => {
    const text = HEADER + line(1) + line(2);
    for (let place = 0; place <= text.length; place += 1) {
      const lines = new WholeLines('csv');
      const before = lines.add(text.slice(0, place));
      expect(HEADER + line(1) + line(2)).toContain(before);
      expect(lines.isWhole).toBe([HEADER, HEADER + line(1), text].includes(text.slice(0, place)));
      expect(before + lines.add(text.slice(place))).toBe(line(1) + line(2));
      expect([lines.count, lines.header, lines.isWhole]).toEqual([2, HEADER, true]);
      expect(lines.lastFields()).toEqual({
        member_id: 'm2',
        email: 'a "quoted",\r\nname é',
        key_id: 'k2',
      });
    }
  });
});

describe('a file of svc admin', () => {
  it('goes on behind the last whole line when the answer is cut, and has each line once', async () => {
    replies = [
      { text: `${HEADER}${line(1)}${line(2)}"m3","a ""quo`, isCut: true },
      { text: HEADER + line(3), isCut: true },
      { text: HEADER + line(4) },
    ];
    const end = await admin(
      'keys',
      'list',
      '--fips',
      'false',
      '--last-use',
      '90',
      '--format',
      'csv',
    );
    expect(end).toMatchObject({
      status: 0,
      stdout: HEADER + line(1) + line(2) + line(3) + line(4),
    });
    expect(end.stderr).toContain('cut off after line 2. It goes on there.');
    expect(afters()).toEqual([null, 'm2.k2', 'm3.k3']);
    expect(asked.at(-1)?.search).toContain('fips=false&last_use=90');
  });

  it('writes a private file that is there when it is whole, and says how many lines it has', async () => {
    writeFileSync(join(folder, 'keys.csv'), 'an older file', { mode: 0o644 });
    replies = [{ text: HEADER + line(1), isCut: true }, { text: HEADER + line(2) }];
    const args = ['keys', '--format', 'csv', '--output', 'keys.csv', '--json'];
    const end = await admin(...args);
    expect(JSON.parse(end.stdout)).toEqual({ file: 'keys.csv', format: 'csv', lines: 2 });
    expect(readdirSync(folder)).toEqual(['keys.csv']);
    expect(readFileSync(join(folder, 'keys.csv'), 'utf8')).toBe(HEADER + line(1) + line(2));
    expect(statSync(join(folder, 'keys.csv')).mode & 0o777).toBe(0o600);
  });

  it('leaves no file, and an older one as it was, when the server refuses in the middle', async () => {
    const path = join(folder, 'members.ndjson');
    for (const older of [undefined, 'an older file']) {
      if (older !== undefined) writeFileSync(path, older);
      replies = [{ type: NDJSON, text: json(1) + json(2), isCut: true }];
      const args = ['members', '--format', 'ndjson', '--output', 'members.ndjson'];
      const end = await admin(...args);
      expect(end).toMatchObject({ status: 4, stdout: '' });
      expect(end.stderr).toContain('Only an admin can do this.');
      expect(existsSync(path) ? readFileSync(path, 'utf8') : undefined).toBe(older);
      expect(readdirSync(folder)).toHaveLength(older === undefined ? 0 : 1);
    }
    expect(afters()).toEqual([null, 'm2', null, 'm2']);
  });

  it('says from where to go on when the output is not whole', async () => {
    replies = [{ type: NDJSON, text: json(1) + json(2), isCut: true }];
    const end = await admin('members', 'list', '--format', 'ndjson');
    expect(end).toMatchObject({ status: 4, stdout: json(1) + json(2) });
    expect(end.stderr).toContain('The output ends after line 2. Go on with: --after m2');
    replies = [{ type: NDJSON, text: json(3) }];
    expect((await admin('members', '--format', 'ndjson', '--after', 'm2')).stdout).toBe(json(3));
    expect(afters().at(-1)).toBe('m2');
  });

  it('takes no answer for a file that is none, or has other columns than its beginning', async () => {
    replies = [{ type: 'text/html', text: '<p>Welcome to the hotel</p>' }];
    expect(await admin('keys', '--format', 'csv')).toMatchObject({ status: 1, stdout: '' });
    replies = [{ text: HEADER + line(1), isCut: true }, { text: `id,${HEADER}${line(2)}` }];
    const end = await admin('keys', '--format', 'csv', '--output', 'keys.csv');
    expect(end.stderr).toContain('The server has changed the columns.');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('refuses options that do not go together, with status 2, and replaces nothing but a file', async () => {
    mkdirSync(join(folder, 'a-folder'));
    const wrong = [
      ['--format', 'xml'],
      ['--output', 'x.csv'],
      ['--format', 'csv', '--limit', '5'],
      ['--format', 'csv', '--json'],
      ['--format', 'csv', '--output', 'a-folder'],
      ['--format', 'csv', '--output', '/dev/stdout'],
    ];
    const ends = await Promise.all(wrong.map((args) => admin('keys', 'list', ...args)));
    expect(ends.map(({ status }) => status)).toEqual(wrong.map(() => 2));
    const missing = await admin('keys', '--format', 'csv', '--output', 'gone/keys.csv');
    expect(missing.stderr).toContain('it, or its folder, does not exist');
    expect(asked).toEqual([]);
  });
});
