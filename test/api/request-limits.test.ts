import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { Body, Controller, Get, HttpCode, Module, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sharesOf } from '../../src/platform/database/tenants/tenant-work.js';
import { PUBLIC } from '../../src/platform/http/routing/route-policy.js';
import { Route } from '../../src/platform/http/routing/route.js';
import { RequestsInFlight } from '../../src/platform/http/server/requests-in-flight.service.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import { headOf, RawConnection } from '../support/raw-connection.js';
import type { RawAnswer } from '../support/raw-http.js';
import { makeTlsAuthority } from '../support/tls-authority.js';

const KIB = 1024;
const METRICS_TOKEN = 'the token of a scraper in a test';

/** The functions that let waiting handlers go on, one for each handler. */
const held: (() => void)[] = [];
const hold = () => new Promise<void>((resolve) => held.push(resolve));

/** An advisory lock that no other code uses. */
const LOCK = 408;

/** Routes of this file that answer, hang or fail. */
@Controller()
@Route({ tier: 'general', auth: PUBLIC })
class TestController {
  constructor(private readonly dataSource: DataSource) {}

  @Post(['scim/v2/Anything', 'oauth/nothing'])
  @HttpCode(200)
  take(): string {
    return 'taken';
  }

  @Post(['v1/keys/register/anything', 'test/anything'])
  @HttpCode(200)
  echo(@Body() body: unknown): unknown {
    return body;
  }

  @Post('test/form')
  @HttpCode(200)
  @Route({ body: { kind: 'form' } })
  form(@Body() body: object): object {
    return { ...body };
  }

  @Get(['scim/v2/Hang', 'oauth/hang', 'saml/acs', 'v1/hang'])
  async hang(): Promise<string> {
    await hold();
    return 'too late';
  }

  @Get('v1/hang/express')
  async hangAtLength(@Res() response: Response): Promise<void> {
    await hold();
    response.status(201).set('X-Late', 'yes').cookie('late', 'yes').json({ too: 'late' });
    response.write('and more', () => held.push(() => undefined));
  }

  @Get('v1/hang/database')
  async hangInDatabase(): Promise<void> {
    await this.dataSource.transaction((tx) => tx.query('SELECT pg_advisory_xact_lock($1)', [LOCK]));
  }

  @Get('v1/stall')
  stall(@Res() response: Response): void {
    response.write('it begins');
  }
}

@Module({ controllers: [TestController] })
class TestModule {}

let app: TestApp;

beforeEach(() => {
  app?.log.splice(0);
});

/** Returns the log lines that have a level. */
const lines = (level: string) => app.log.filter((line) => line.includes(`"level":"${level}"`));

/** The headers of a form, and a JSON body of exactly `bytes` bytes. */
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' };
const bodyOf = (bytes: number) => '{}'.padEnd(bytes);

interface Sent {
  readonly path: string;
  readonly body: string;
  readonly chunked?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a POST with `Content-Length`, or in chunks. */
async function post({ path, body, chunked = false, headers = {} }: Sent) {
  const sent = request(app.baseUrl + path, {
    method: 'POST',
    agent: false,
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': newAddress(),
      ...(chunked ? {} : { 'content-length': Buffer.byteLength(body) }),
      ...headers,
    },
  });
  if (chunked) {
    for (let at = 0; at < body.length; at += 16_000) sent.write(body.slice(at, at + 16_000));
  }
  sent.end(chunked ? undefined : body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: answer.statusCode, headers: answer.headers, text: await text(answer) };
}

/**
 * Sends bytes on a new connection. Returns the response when the server has closed the connection.
 */
async function exchange(...bytes: string[]): Promise<RawAnswer> {
  const connection = new RawConnection(app.baseUrl);
  for (const part of bytes) connection.socket.write(part);
  return connection.farewell();
}

/** Returns content as a chunk (RFC 9112 §7.1). */
const chunk = (content: string) => `${content.length.toString(16)}\r\n${content}\r\n`;

/** The last chunk of a body, without trailers. */
const END = '0\r\n\r\n';

/**
 * Checks that a response has each header once, and those that the service sends with every
 * response.
 */
function expectOurHeaders(answer: RawAnswer): void {
  const names = answer.headers.map(([name]) => name.toLowerCase());
  expect(names).toEqual([...new Set(names)]);
  expect(answer.header('x-frame-options')).toBe('DENY');
  expect(answer.header('x-content-type-options')).toBe('nosniff');
  expect(answer.header('content-security-policy')).toContain("frame-ancestors 'none'");
  expect(answer.header('x-fapi-interaction-id')).toMatch(/^[0-9a-f-]{36}$/);
  expect(Date.parse(answer.header('date') ?? '')).not.toBeNaN();
  // the body was read as Latin-1, so that a character is a byte
  expect(Number(answer.header('content-length'))).toBe(answer.body.length);
}

const PROBLEM = 'application/problem+json; charset=utf-8';
const PAGE = 'text/html; charset=utf-8';
const SCIM = 'application/scim+json';
const OAUTH = 'application/json; charset=utf-8';

describe('bodies', () => {
  let credentials: Record<string, string>;

  beforeAll(async () => {
    app = await startTestApp({ modules: [TestModule], timeouts: { linger: 1500 } });
    const { client } = await app.enrolled('limits@example.org');
    credentials = {
      cookie: `svc_session=${client.cookie('svc_session')}`,
      origin: app.baseUrl,
    };
  });
  afterAll(() => app.close());

  const limits = [
    ['/v1/credentials/ssh', 8, PROBLEM, 400],
    ['/login/webauthn/start', 32, PROBLEM, 200],
    ['/enroll/webauthn/complete', 32, PROBLEM, 400],
    ['/v1/keys/register/anything', 32, PROBLEM, 200],
    ['/V1/Keys/Register/Start/', 32, PROBLEM, 200],
    ['/scim/v2/Anything', 64, SCIM, 200],
    ['/saml/acs', 64, PAGE, 400],
    ['/oauth/nothing', 256, OAUTH, 200],
    ['/test/anything', 256, PROBLEM, 200],
    ['/api/webhooks/github', 1024, PROBLEM, 503], // 503, because no GitHub App is configured
  ] as const;

  describe.each(limits)('%s', (path, kib, voice, accepted) => {
    it.each([
      ['with its length', false],
      ['in chunks', true],
    ])(`takes ${kib} KiB and not a byte more, sent %s`, async (_, chunked) => {
      const headers = path === '/saml/acs' ? FORM_TYPE : credentials;
      const at = await post({ path, chunked, headers, body: bodyOf(kib * KIB) });
      expect(at.status).toBe(accepted);

      const over = await post({ path, chunked, headers, body: bodyOf(kib * KIB + 1) });
      expect([over.status, over.headers['content-type']]).toEqual([413, voice]);
      expect(over.text).not.toBe('');
    });
  });

  it('are refused by their length before a byte arrived', async () => {
    const length = `Content-Length: ${1024 ** 3}`;
    const type = 'Content-Type: application/json';
    const answer = await exchange(headOf(app.baseUrl, 'POST /scim/v2/Anything', [type, length]));
    expect([answer.status, answer.header('content-type')]).toEqual([413, SCIM]);
    expect(answer.header('connection')).toBe('close');
    expectOurHeaders(answer);
  });

  it('in chunks are refused as soon as the limit is passed', async () => {
    const headers = ['Content-Type: application/json', 'Transfer-Encoding: chunked'];
    const head = headOf(app.baseUrl, 'POST /scim/v2/Anything', headers);
    const answer = await exchange(head, chunk(bodyOf(65 * KIB))); // the last chunk is never sent
    expect([answer.status, answer.header('connection')]).toEqual([413, 'close']);
    expectOurHeaders(answer);
  });

  it('within the limit are read, and the connection stays open', async () => {
    const connection = new RawConnection(app.baseUrl);
    const headers = ['Content-Type: application/json', 'Content-Length: 7'];
    for (let turn = 1; turn <= 3; turn += 1) {
      const body = `{"a":${turn}}`;
      connection.socket.write(headOf(app.baseUrl, 'POST /test/anything', headers) + body);
      await connection.receives(body);
    }
    expect(connection.socket.closed).toBe(false);
    connection.socket.destroy();
  });

  it.each([
    ['nothing is there', 404, 'POST /nothing', []],
    ['the session is missing', 401, 'POST /v1/credentials/ssh', []],
    ['the method is another', 405, 'POST /health', []],
    ['the route reads no body', 200, 'GET /health', []],
    ['the type is another', 415, 'POST /test/anything', ['Content-Type: text/plain']],
    ['the type is missing', 415, 'POST /test/anything', []],
    [
      'it is compressed',
      415,
      'POST /test/anything',
      ['Content-Type: application/json', 'Content-Encoding: gzip'],
    ],
    ['the host is another', 421, 'POST /test/anything', ['Host: evil.example']],
  ])('are left unread, and the connection ends, where %s', async (_, status, line, headers) => {
    const connection = new RawConnection(app.baseUrl);
    const named = headers.some((header) => header.startsWith('Host:'));
    const head = headOf(app.baseUrl, line, [...headers, 'Transfer-Encoding: chunked']);
    connection.socket.write(named ? head.replace(/Host: localhost.*\r\n/, '') : head);
    const sent = await connection.pour(64 * KIB * KIB);
    const answer = await connection.farewell();
    expect([answer.status, answer.header('connection')]).toEqual([status, 'close']);
    // less than half: a megabyte, and what the buffers of two sockets hold
    expect(sent).toBeLessThan(32 * KIB * KIB);
  });

  it('are refused also for clients that read only after they sent everything', async () => {
    const headers = ['Content-Type: application/json', 'Transfer-Encoding: chunked'];
    const connection = new RawConnection(app.baseUrl);
    const { socket } = connection;
    socket.pause();
    socket.write(headOf(app.baseUrl, 'POST /scim/v2/Anything', headers));
    for (let part = 0; part < 10; part += 1) {
      socket.write(chunk('x'.repeat(64 * KIB)));
      await delay(20);
    }
    socket.resume();
    expect((await connection.farewell()).status).toBe(413);
  });

  it.each([
    ['/test/anything', 200],
    ['/v1/credentials/aws/token', 200],
    [`/api/v1/org/members/${crypto.randomUUID()}/promote`, 404],
  ])('of no bytes count as no body, chunked and without a type: %s', async (path, status) => {
    const { cookie, origin } = credentials;
    const answerTo = (framing: string, body = '') => {
      const headers = [`Cookie: ${cookie}`, `Origin: ${origin}`, framing, 'Connection: close'];
      return exchange(headOf(app.baseUrl, `POST ${path}`, headers) + body);
    };
    const chunked = 'Transfer-Encoding: chunked';
    const [without, empty] = [await answerTo('Content-Length: 0'), await answerTo(chunked, END)];
    expect([without.status, empty.status]).toEqual([status, status]);
    const refused = await answerTo(chunked, chunk('{}') + END);
    expect([refused.status, JSON.parse(refused.body)]).toMatchObject([
      415,
      { code: 'unsupported_media_type' },
    ]);
  });

  it('of no bytes leave the connection open', async () => {
    const connection = new RawConnection(app.baseUrl);
    const head = headOf(app.baseUrl, 'POST /test/anything', ['Transfer-Encoding: chunked']);
    for (let turn = 1; turn <= 2; turn += 1) {
      connection.socket.write(head);
      connection.socket.write(END);
      await expect.poll(() => connection.received.split('HTTP/1.1 200').length).toBe(turn + 1);
    }
    expect(connection.socket.closed).toBe(false);
    connection.socket.destroy();
  });

  it('that the client cuts short are not logged as a fault of the service', async () => {
    const headers = ['Content-Type: application/json', 'Content-Length: 1000'];
    for (const end of ['destroy', 'end', 'resetAndDestroy'] as const) {
      const connection = new RawConnection(app.baseUrl);
      connection.socket.write(`${headOf(app.baseUrl, 'POST /test/anything', headers)}{"half`);
      await delay(50);
      connection.socket[end]();
      await once(connection.socket, 'close');
    }
    await expect.poll(() => lines('info').join('\n')).toContain('POST /test/anything aborted');
    expect(lines('error')).toEqual([]);
  });

  it('that the client cuts short during an earlier request do not end the process', async () => {
    const headers = ['Content-Type: application/json', 'Content-Length: 1000'];
    const half = `${headOf(app.baseUrl, 'POST /test/anything', headers)}{"half`;
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(headOf(app.baseUrl, 'GET /v1/hang') + half);
    await expect.poll(() => held.length).toBe(1);
    await delay(50); // in this time the server begins to read the body
    connection.socket.resetAndDestroy();
    await expect.poll(() => app.nest.get(RequestsInFlight).count).toBe(0);
    held.pop()?.();
    expect(lines('error')).toEqual([]);
  });

  it.each([
    ['not JSON', '{'],
    ['not an object', '"text"'],
    ['not UTF-8', '{"a":"\u00ff"}'],
    ['not text in a value', String.raw`{"a":["b\u0000"]}`],
    ['not text in a name', String.raw`{"\u0000":1}`],
    ['half a pair of surrogates', String.raw`{"a":"\\\uD83D"}`],
    ['33 levels deep', `${'['.repeat(33)}${']'.repeat(33)}`],
  ])('that are %s are malformed', async (_, body) => {
    const length = `Content-Length: ${body.length}`;
    const headers = ['Content-Type: application/json', length, 'Connection: close'];
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(headOf(app.baseUrl, 'POST /test/anything', headers) + body, 'latin1');
    const answer = await connection.farewell();
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([
      400,
      { code: 'malformed_body' },
    ]);
  });

  it('that contain escaped text, and are 32 levels deep, are read', async () => {
    const deep = `${'['.repeat(31)}${']'.repeat(31)}`;
    const body = String.raw`{"a":"\\u0000 \uD83D\uDE00 \u0001","b":${deep}}`;
    expect((await post({ path: '/test/anything', body })).status).toBe(200);
  });

  it.each(['utf-16', 'iso-8859-1'])('in %s are of an unsupported type', async (charset) => {
    const type = { 'content-type': `application/json; charset=${charset}` };
    expect((await post({ path: '/test/anything', body: '{}', headers: type })).status).toBe(415);
  });

  describe('a form', () => {
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    const send = (body: string, headers = type) => post({ path: '/test/form', body, headers });

    it('is flat: brackets and the names of prototypes are names', async () => {
      const answer = await send('a=1&b%5Bc%5D=2&__proto__=3&constructor=4&empty=&b+c=d+e%2B');
      expect(answer.status).toBe(200);
      expect(Object.entries(JSON.parse(answer.text) as object)).toEqual([
        ['a', '1'],
        ['b[c]', '2'],
        ['__proto__', '3'],
        ['constructor', '4'],
        ['empty', ''],
        ['b c', 'd e+'],
      ]);
    });

    it('is refused when a field occurs twice', async () => {
      const answer = await send('token=a&token=b');
      expect([answer.status, JSON.parse(answer.text)]).toMatchObject([
        400,
        { code: 'invalid_request' },
      ]);
    });

    it('is refused with more than a hundred fields', async () => {
      const fields = (count: number) =>
        Array.from({ length: count }, (_, index) => `f${index}=1`).join('&');
      expect((await send(fields(100))).status).toBe(200);
      expect((await send(fields(101))).status).toBe(400);
    });

    it('is refused with U+0000', async () => {
      const answer = await send('a=b%00');
      expect([answer.status, JSON.parse(answer.text)]).toMatchObject([
        400,
        { code: 'malformed_body' },
      ]);
    });

    it('is read only where a form is expected, and no other type is read there', async () => {
      expect((await send('{}', { 'content-type': 'application/json' })).status).toBe(415);
      expect((await post({ path: '/test/anything', body: 'a=1', headers: type })).status).toBe(415);
    });
  });
});

describe('the Expect header', () => {
  beforeAll(async () => {
    app = await startTestApp({ modules: [TestModule] });
  });
  afterAll(() => app.close());

  const expecting = (line: string, what: string) =>
    headOf(app.baseUrl, line, [
      `Expect: ${what}`,
      'Content-Type: application/json',
      'Content-Length: 7',
    ]);

  it('with 100-continue gets 100 Continue when the body is wanted', async () => {
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(expecting('POST /test/anything', '100-continue'));
    await connection.receives('HTTP/1.1 100 Continue');
    expect(connection.received).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    connection.socket.write('{"a":1}');
    await connection.receives('HTTP/1.1 200 OK');
    connection.socket.destroy();
  });

  it('with 100-continue gets 100 Continue for chunks without a type, which may be none', async () => {
    const headers = ['Expect: 100-continue', 'Transfer-Encoding: chunked'];
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(headOf(app.baseUrl, 'POST /test/anything', headers));
    await connection.receives('HTTP/1.1 100 Continue');
    expect(connection.received).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    connection.socket.write(END);
    await connection.receives('HTTP/1.1 200 OK');
    connection.socket.destroy();
  });

  it.each([
    ['POST /v1/credentials/ssh', 401],
    ['POST /nothing', 404],
    ['POST /health', 405],
  ])('for %s is answered %i, and the body is never requested', async (line, status) => {
    const answer = await exchange(expecting(line, '100-continue'));
    expect([answer.status, answer.header('connection')]).toEqual([status, 'close']);
  });

  it.each(['200-ok', '100-continue, 200-ok'])(
    'with %s is refused in the error format of the path',
    async (what) => {
      const answer = await exchange(expecting('POST /scim/v2/Anything', what));
      expect([answer.status, answer.header('content-type')]).toEqual([417, SCIM]);
      expectOurHeaders(answer);
    },
  );
});

describe('an error that Node would answer itself', () => {
  beforeAll(async () => {
    app = await startTestApp({
      modules: [TestModule],
      timeouts: { headers: 500 },
      environment: { SVC_METRICS_BEARER_TOKEN: METRICS_TOKEN },
    });
  });
  afterAll(() => app.close());

  const long = 'x'.repeat(17 * KIB);
  const chunked = ['Content-Type: application/json', 'Transfer-Encoding: chunked'];

  it.each([
    ['a line that is none', 400, 'invalid_request', 'GET\r\n\r\n'],
    ['a version that is none', 400, 'invalid_request', 'GET / HTTP/9.9\r\n\r\n'],
    ['a header without a colon', 400, 'invalid_request', 'GET / HTTP/1.1\r\nnonsense\r\n\r\n'],
    [
      'two lengths',
      400,
      'invalid_request',
      `GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n`,
    ],
    [
      'a length below nothing',
      400,
      'invalid_request',
      'GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n',
    ],
    [
      'a length beyond all numbers',
      400,
      'invalid_request',
      `GET / HTTP/1.1\r\nContent-Length: ${'9'.repeat(30)}\r\n\r\n`,
    ],
    [
      'a length and chunks',
      400,
      'invalid_request',
      'GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a TLS handshake', 400, 'invalid_request', '\u0016\u0003\u0001\u0002\u0000\u0001'],
    ['headers over 16 KiB', 431, 'headers_too_large', `GET / HTTP/1.1\r\nX: ${long}\r\n\r\n`],
    ['a target over 16 KiB', 431, 'headers_too_large', `GET /${long} HTTP/1.1\r\n\r\n`],
    [
      'CONNECT',
      405,
      'method_not_allowed',
      'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n',
    ],
    ['half a head', 408, 'timed_out', 'GET / HTTP/1.1\r\nHost: loc'],
  ])(
    '%s: a %i with all headers of the service, logged and counted',
    async (_, status, code, bytes) => {
      const method = bytes.startsWith('CONNECT') ? 'CONNECT' : 'OTHER';
      const metric = `http_requests_total{method="${method}",path="<unmatched>",status="${status}"}`;
      const before = await counted(metric);
      const answer = await exchange(bytes);

      expect([answer.status, answer.header('connection')]).toEqual([status, 'close']);
      expect(answer.header('content-type')).toBe(PROBLEM);
      expect(answer.header('cache-control')).toBe('no-cache, no-store, must-revalidate');
      expect(answer.header('allow') !== undefined).toBe(status === 405);
      expectOurHeaders(answer);
      expect(JSON.parse(answer.body)).toMatchObject({ status, code });

      const id = answer.header('x-fapi-interaction-id') ?? 'none';
      const [line] = app.log.filter((written) => written.includes(id));
      expect(JSON.parse(line ?? '{}')).toMatchObject({
        level: 'info',
        context: 'http',
        msg: `unreadable ${status}`,
      });
      expect(await counted(metric)).toBe(before + 1);
    },
  );

  it.each([
    ['a chunk without a size', 400, chunk('{') + 'nonsense\r\n'],
    ['a chunk with endless extensions', 413, `1;${long}\r\n{\r\n`],
    ['endless trailers', 431, `${chunk('{}')}0\r\nX: ${long}\r\n\r\n`],
  ])('%s in a body is answered in the error format of its path', async (_, status, body) => {
    const answer = await exchange(headOf(app.baseUrl, 'POST /scim/v2/Anything', chunked), body);
    expect([answer.status, answer.header('content-type')]).toEqual([status, SCIM]);
    expect(answer.header('connection')).toBe('close');
    expectOurHeaders(answer);
    await expect.poll(() => lines('info').join('\n')).toContain(`POST /scim/v2/Anything ${status}`);
    await delay(50); // the guards of the route finish in this time
    expect(lines('error')).toEqual([]);
  });

  it.each([
    ['nonsense', 400, 'nonsense\r\n\r\nmore nonsense'],
    ['CONNECT', 405, 'CONNECT evil.example:443 HTTP/1.1\r\n\r\n'],
  ])('%s after a request in progress is answered in order', async (_, status, bytes) => {
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(headOf(app.baseUrl, 'GET /v1/hang') + bytes);
    await expect.poll(() => held.length).toBe(1);
    expect(connection.received).toBe('');
    held.pop()?.();
    await connection.farewell();
    const statuses = connection.received.match(/HTTP\/1.1 \d+/g);
    expect(statuses).toEqual(['HTTP/1.1 200', `HTTP/1.1 ${status}`]);
  });

  it('CONNECT after requests in progress, and a reset: the process survives, and releases all of them', async () => {
    const connection = new RawConnection(app.baseUrl);
    const tunnel = 'CONNECT evil.example:443 HTTP/1.1\r\n\r\n';
    connection.socket.write(headOf(app.baseUrl, 'GET /v1/hang').repeat(3) + tunnel);
    await expect.poll(() => held.length).toBe(3);
    connection.socket.resetAndDestroy();
    const aborted = () => lines('info').filter((line) => line.includes('GET /v1/hang aborted'));
    await expect.poll(() => aborted().length).toBe(3);
    expect(app.nest.get(RequestsInFlight).count).toBe(0);
    held.splice(0).forEach((release) => release());
    await delay(50); // in this time the handlers write responses, which are dropped
    expect(lines('error')).toEqual([]);
  });

  it('a malformed request after an answered one is answered too', async () => {
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(headOf(app.baseUrl, 'GET /health'));
    await connection.receives('ok');
    connection.socket.write('nonsense\r\n\r\n');
    await connection.farewell();
    expect(connection.received.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
  });

  it('a connection opened ahead and never used is closed without a response', async () => {
    const connection = new RawConnection(app.baseUrl);
    await connection.farewell();
    expect(connection.received).toBe('');
    expect(app.log).toEqual([]);
  });

  it('a closed connection is not answered', async () => {
    for (const bytes of [
      'GET / HTTP/1.1\r\nHo',
      'nonsense\r\n\r\n',
      headOf(app.baseUrl, 'GET /'),
    ]) {
      const connection = new RawConnection(app.baseUrl);
      connection.socket.write(bytes);
      await once(connection.socket, 'connect');
      connection.socket.resetAndDestroy();
    }
    // a slow client, which came last, has been disconnected by its time limit
    await exchange('GET / HTTP/1.1\r\nHo');
    expect((await app.client().get('/health')).status).toBe(200);
    expect([...lines('error'), ...lines('fatal')]).toEqual([]);
  });

  async function counted(metric: string): Promise<number> {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
    const { text: scraped } = await app.client().get('/metrics', { headers });
    const line = scraped.split('\n').find((each) => each.startsWith(metric));
    return Number(line?.slice(metric.length) ?? 0);
  }
});

describe('the deadline', () => {
  beforeAll(async () => {
    app = await startTestApp({
      modules: [TestModule],
      timeouts: { request: 600, linger: 1000 },
      environment: { SVC_METRICS_BEARER_TOKEN: METRICS_TOKEN },
    });
  });
  afterAll(() => app.close());

  it.each([
    ['/v1/hang', PROBLEM],
    ['/v1/hang/express', PROBLEM],
    ['/scim/v2/Hang', SCIM],
    ['/oauth/hang', OAUTH],
    ['/saml/acs', PAGE],
  ])('%s hangs: 408 in its error format, and a later write is dropped', async (path, voice) => {
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(headOf(app.baseUrl, `GET ${path}`));
    const answer = await connection.farewell();
    expect([answer.status, answer.header('content-type')]).toEqual([408, voice]);
    expect(answer.header('connection')).toBe('close');
    expectOurHeaders(answer);

    expect(held).toHaveLength(1);
    held.pop()?.();
    await delay(50);
    // The callback of the late write is called too, so that no code waits for it forever.
    expect(held.splice(0)).toHaveLength(path.endsWith('express') ? 1 : 0);
    expect(connection.received).not.toContain('late');
    expect(lines('info').filter((line) => line.includes(`GET ${path} 408`))).toHaveLength(1);
    expect(lines('error')).toEqual([]);
  });

  it('is counted with its status', async () => {
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(headOf(app.baseUrl, 'GET /v1/hang'));
    await connection.farewell();
    held.splice(0).forEach((release) => release());
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
    const { text: scraped } = await app.client().get('/metrics', { headers });
    expect(scraped).toMatch(
      /^http_requests_total\{method="GET",path="\/v1\/hang",status="408"\} \d+$/m,
    );
  });

  it('a database hangs: the connections of aborted requests return to the pool', async () => {
    const holder = app.dataSource.createQueryRunner();
    await holder.query('SELECT pg_advisory_lock($1)', [LOCK]);
    const waiting = async () => {
      const locks = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
      return (await holder.query(locks, [], true)).records.length;
    };
    const others = sharesOf(app.config.database.maxConnections).main - 1;
    const asked = Array.from({ length: others }, () =>
      exchange(headOf(app.baseUrl, 'GET /v1/hang/database')),
    );
    await expect.poll(waiting).toBe(others);
    const answers = await Promise.all(asked);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 408));

    // the statements end by their own time limit, because the lock is still held
    await expect.poll(waiting).toBe(0);
    expect((await app.client().get('/health/ready')).status).toBe(200);
    await holder.query('SELECT pg_advisory_unlock($1)', [LOCK]);
    await holder.release();
  });

  it('a response that began and stalls is aborted with its connection', async () => {
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(headOf(app.baseUrl, 'GET /v1/stall'));
    await connection.receives('it begins');
    await connection.farewell();
    expect(connection.received).not.toContain('HTTP/1.1 408');
    await expect.poll(() => lines('info').join('\n')).toContain('GET /v1/stall aborted');
  });

  it('a body that never ends is aborted, and its buffers are released', async () => {
    const headers = ['Content-Type: application/json', 'Content-Length: 1000'];
    const head = headOf(app.baseUrl, 'POST /scim/v2/Anything', headers);
    const answer = await exchange(head, '{');
    expect([answer.status, answer.header('content-type')]).toEqual([408, SCIM]);
    expect(lines('error')).toEqual([]);
    expect(lines('warn')).toHaveLength(1);
  });

  it('a request that is answered in time is not affected', async () => {
    const connection = new RawConnection(app.baseUrl);
    for (let turn = 1; turn <= 3; turn += 1) {
      connection.socket.write(headOf(app.baseUrl, 'GET /health'));
      await expect.poll(() => connection.received.split('HTTP/1.1 200').length).toBe(turn + 1);
      // hangs until its time limit
      if (turn === 2) await exchange(headOf(app.baseUrl, 'GET /v1/hang'));
    }
    held.splice(0).forEach((release) => release());
    expect(connection.socket.closed).toBe(false);
    connection.socket.destroy();
  });
});

describe('over TLS', () => {
  const authority = makeTlsAuthority();

  beforeAll(async () => {
    const ports = { https: await freePort(), http: await freePort() };
    app = await startTestApp({
      modules: [TestModule],
      ports,
      timeouts: { handshake: 500 },
      environment: {
        SVC_BASE_URL: `https://localhost:${ports.https}`,
        SVC_TLS_CERT: authority.cert,
        SVC_TLS_KEY: authority.key,
        SVC_MTLS_PORT: String(await freePort()),
      },
    });
  });
  afterAll(() => app.close());

  const open = () => {
    const port = Number(new URL(app.config.http.baseUrl).port);
    const socket = connectTls({ port, host: 'localhost', ca: authority.ca });
    return new RawConnection(app.config.http.baseUrl, socket);
  };

  it('a client that is refused while it sends still gets its response', async () => {
    const headers = ['Content-Type: application/json', 'Transfer-Encoding: chunked'];
    const connection = open();
    connection.socket.write(headOf(app.config.http.baseUrl, 'POST /scim/v2/Anything', headers));
    const sent = await connection.pour(64 * KIB * KIB);
    const answer = await connection.farewell();
    expect([answer.status, answer.header('content-type')]).toEqual([413, SCIM]);
    expect(answer.header('strict-transport-security')).toContain('max-age=63072000');
    expectOurHeaders(answer);
    expect(sent).toBeLessThan(32 * KIB * KIB);
  });

  it('an unreadable request is answered with the headers of TLS', async () => {
    const connection = open();
    connection.socket.write('nonsense\r\n\r\n');
    const answer = await connection.farewell();
    expect(answer.status).toBe(400);
    expect(answer.header('strict-transport-security')).toContain('max-age=63072000');
    expectOurHeaders(answer);
  });

  it.each([
    ['speaks something else', 'GET / HTTP/1.1\r\n\r\n'],
    ['never says a word', ''],
  ])('a client that %s instead of a handshake is disconnected', async (_, bytes) => {
    const connection = new RawConnection(app.config.http.baseUrl);
    connection.socket.write(bytes);
    await connection.farewell();
    expect(connection.received).not.toContain('HTTP/1.1');
    expect(lines('error')).toEqual([]);
  });
});
