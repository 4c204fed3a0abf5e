import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { SvcHome } from '../support/svc-command.js';

/** A response that the test's server gives to one request. */
interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: object;
}

const event = (id: string) => ({
  id,
  type: 'logout',
  actor_email: 'ada@x.example',
  subject_email: 'ada@x.example',
  client_name: null,
  ip: '192.0.2.1',
  created_at: '2026-11-26T08:00:00.000Z',
});

let replies: Reply[] = [];
let asked: string[] = [];
let home: SvcHome;
const server = createServer((request, response) => {
  asked.push(String(request.url));
  const { status = 200, headers = {}, body } = replies.shift() ?? LOGGED_OUT;
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
});
const LOGGED_OUT: Reply = { status: 401, body: { detail: 'The token has expired.' } };
const page = (next: string, ...ids: string[]) => ({ body: { events: ids.map(event), next } });

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
  asked = [];
});
afterEach(() => home.remove());

const follow = (...args: string[]) => home.run(['admin', 'audit', '--follow', ...args]);
it('refuses a time beside a cursor, which it would not obey', async () => {
  const end = await follow('--since', '2h', '--after', 'nine');
  expect(end).toMatchObject({ status: 2, stderr: expect.stringContaining('--since') });
  expect(asked).toEqual([]);
});

it('ends when the program that reads its output has ended', async () => {
  replies = [page('one'), ...Array.from({ length: 9 }, (_, n) => page(`next-${n}`, `${n}`))];
  const started = (child: { stdout?: { destroy(): void } | null }) => child.stdout?.destroy();
  const end = await home.run(['admin', 'audit', '--follow'], { started, input: '' });
  expect(end.status).toBe(0);
  expect(asked.length).toBeLessThan(9);
});

const askedAfter = () => asked.map((url) => new URL(url, 'http://x').searchParams.get('after'));

it('goes on by each cursor, after a 429, and after the feed began again', async () => {
  const detail = 'Go on with the cursor of this answer.';
  replies = [
    page('one'),
    page('two', 'a', 'b'),
    { status: 429, headers: { 'retry-after': '0' }, body: {} },
    { status: 409, body: { code: 'feed_restarted', cursor: 'three', detail } },
    page('four', 'c'),
  ];
  const end = await follow('--type', 'logins');
  expect(askedAfter()).toEqual(['latest', 'one', 'two', 'two', 'three', 'four']);
  expect(asked.at(-1)).toContain('order=asc&type=logins');
  expect(end.stdout.match(/logout/g)).toHaveLength(3);
  expect(end.stderr).toContain('was restored or has lost events');
  expect(end.status).toBe(3);
  expect(end.stderr).toContain('svc admin audit --follow --after four');
});

it('prints an event of the time before once, and goes on where it was told to', async () => {
  replies = [page('one'), page('', 'b', 'a'), page('two', 'b', 'c')];
  replies[1] = { body: { events: ['b', 'a'].map(event), next: null } };
  const end = await follow('--since', '2h', '--json');
  const ids = end.stdout.match(/"id":"(\w)"/g);
  expect(ids).toEqual(['"id":"a"', '"id":"b"', '"id":"c"']);
  replies = [page('ten', 'd')];
  asked = [];
  await follow('--after', 'nine');
  expect(askedAfter()).toEqual(['nine', 'ten']);
});
