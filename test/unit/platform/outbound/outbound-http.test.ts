import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  OutboundFailed,
  OutboundHttp,
  OutboundRefused,
  type OutboundOptions,
} from '../../../../src/platform/outbound/outbound-http.service.js';
import { makeTlsAuthority } from '../../../support/tls-authority.js';

const authority = makeTlsAuthority();
const LOCAL = { http: { tls: undefined, baseUrl: 'http://localhost:3000' } };
const PUBLIC = {
  http: { tls: { cert: 'certificate', key: 'key' }, baseUrl: 'https://svc.example' },
} as unknown as ConstructorParameters<typeof OutboundHttp>[0];
const KIBIBYTES_64 = 64 * 1024;

/** Returns options that resolve every host name to these IP addresses. */
const to = (...addresses: string[]): OutboundOptions => ({ resolve: async () => addresses });

const servers: (Server & { closeAllConnections?(): void })[] = [];

/**
 * Starts a server for the duration of this file.
 * @returns its port
 */
async function listen(server: Server, host: string, port = 0): Promise<number> {
  servers.push(server);
  await new Promise<void>((listening, failed) => {
    server.once('error', failed).listen(port, host, listening);
  });
  return (server.address() as AddressInfo).port;
}
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections?.();
    server.close();
  }
});

/** Creates a server that counts connections and closes them at once. */
function trap(): { server: Server; connections: () => number } {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  return { server, connections: () => connections };
}

/** Waits until a fetch fails for this reason, and returns the cause that is logged. */
async function causeOf(
  reason: OutboundFailed['reason'],
  answer: Promise<Response>,
): Promise<unknown> {
  const error = await answer.then(
    () => undefined,
    (one: unknown) => one,
  );
  expect(error).toBeInstanceOf(OutboundFailed);
  expect((error as OutboundFailed).reason).toBe(reason);
  return (error as Error).cause;
}

describe('an address that must not be fetched', () => {
  const { server, connections } = trap();
  let port: number;
  beforeAll(async () => {
    port = await listen(server, '::');
  });

  /**
   * Returns whether each of the two methods refuses the address, and how many connections the trap
   * server got.
   */
  async function outcome(http: OutboundHttp, address: string): Promise<unknown[]> {
    const said = await Promise.allSettled([http.assertAllowed(address), http.fetch(address)]);
    const refused = said.map(
      (one) => one.status === 'rejected' && one.reason instanceof OutboundRefused,
    );
    return [...refused, connections()];
  }
  const REFUSED_UNTOUCHED = [true, true, 0];

  it('is detected by the trap server of these tests when a client connects', async () => {
    const { server: another, connections: seen } = trap();
    const open = await listen(another, '::');
    await causeOf('connection', new OutboundHttp(LOCAL).fetch(`http://127.0.0.1:${open}/`));
    await causeOf('connection', new OutboundHttp(LOCAL).fetch(`http://[::1]:${open}/`));
    expect(seen()).toBe(2);
  });

  it.each([
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    '0177.0.0.1',
    '2130706433',
    '0x7f000001',
    '017700000001',
    '127.0.0.1.',
    '１２７.0.0.1',
    '127。0。0。1',
    '%31%32%37.0.0.1',
    '0',
    'localhost',
    'localhost.',
    'LocalHost',
    'x.localhost',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::]',
    '[::ffff:7f00:1]',
    '[::ffff:127.0.0.1]',
    '[::127.0.0.1]',
    '[64:ff9b::127.0.0.1]',
    '[2002:7f00:1::]',
  ])('is https://%s, which leads back to the service itself', async (host) => {
    expect(await outcome(new OutboundHttp(PUBLIC), `https://${host}:${port}/jwks.json`)).toEqual(
      REFUSED_UNTOUCHED,
    );
  });

  it.each([
    ['a private address', ['10.0.0.1']],
    ['a global and a private address', ['203.0.114.7', '192.168.0.1']],
    ['a global and a loopback address', ['203.0.114.7', '127.0.0.1']],
    ['a global IPv4 and a private IPv6 address', ['203.0.114.7', 'fd00::1']],
    ['a mapped loopback address', ['::ffff:127.0.0.1']],
    ['metadata', ['169.254.169.254']],
    ['what is no address', ['localhost']],
    ['nothing', []],
  ])('is a name that resolves to %s', async (_, addresses) => {
    for (const config of [PUBLIC, LOCAL]) {
      expect(
        await outcome(new OutboundHttp(config, to(...addresses)), `https://name.example:${port}/`),
      ).toEqual(REFUSED_UNTOUCHED);
    }
  });

  it.each([
    '169.254.169.254',
    '0xa9fea9fe',
    '169.254.170.2',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    '[fd00:ec2::254]',
    '[::ffff:169.254.169.254]',
    '10.0.0.1',
    '0.0.0.0',
    '[::]',
    '[::ffff:127.0.0.1]',
  ])('is %s, which is not loopback, where only loopback is allowed', async (host) => {
    expect(await outcome(new OutboundHttp(LOCAL), `http://${host}/latest/meta-data/`)).toEqual(
      REFUSED_UNTOUCHED,
    );
    expect(await outcome(new OutboundHttp(LOCAL), `https://${host}/latest/meta-data/`)).toEqual(
      REFUSED_UNTOUCHED,
    );
  });

  it.each([
    'http://8.8.8.8/',
    'ftp://127.0.0.1/',
    'file:///etc/passwd',
    'data:application/json,{}',
    'unix:/var/run/docker.sock',
    'https://user@127.0.0.1/',
    'https://:password@127.0.0.1/',
    'https://127.0.0.1/#fragment',
    'https://127.0.0.1:99999/',
    'https://',
    '//127.0.0.1/',
    'jwks.json',
    '',
  ])('is %s, which has a refused form', async (address) => {
    expect(await outcome(new OutboundHttp(LOCAL), address)).toEqual(REFUSED_UNTOUCHED);
  });

  it('is not resolved when its scheme is refused', async () => {
    const asked: string[] = [];
    const http = new OutboundHttp(PUBLIC, {
      resolve: async (name) => {
        asked.push(name);
        return ['203.0.114.7'];
      },
    });
    expect(await outcome(http, 'http://name.example/')).toEqual(REFUSED_UNTOUCHED);
    expect(asked).toEqual([]);
  });

  it.each([
    ['TLS is configured', { ...PUBLIC.http, baseUrl: 'https://localhost' }],
    ['the base URL is a proxy’s', { tls: undefined, baseUrl: 'https://svc.example' }],
  ])('is loopback, when %s', async (_, http) => {
    expect(await outcome(new OutboundHttp({ http }), `https://127.0.0.1:${port}/`)).toEqual(
      REFUSED_UNTOUCHED,
    );
  });
});

describe('an address that may be fetched', () => {
  it('resolves to global addresses only, and the check opens no connection', async () => {
    const asked: string[] = [];
    const http = new OutboundHttp(PUBLIC, {
      resolve: async (name) => {
        asked.push(name);
        return ['203.0.114.7', '2606:4700::1111'];
      },
    });
    await expect(
      http.assertAllowed('https://name.example:8443/jwks.json'),
    ).resolves.toBeUndefined();
    expect(asked).toEqual(['name.example']);
  });

  it('receives the request, and its status, headers and body are returned', async () => {
    const port = await listen(
      createHttpsServer(authority, ({ method, headers, url }, answer) => {
        answer.writeHead(201, { 'content-type': 'application/json', 'x-two': ['a', 'b'] });
        answer.end(JSON.stringify([method, headers.accept, url, headers['content-length']]));
      }),
      '127.0.0.1',
    );
    const answer = await new OutboundHttp(LOCAL, { ca: [authority.ca] }).fetch(
      `https://localhost:${port}/keys?x=1`,
      { method: 'POST', headers: { accept: 'application/json' }, body: 'a=b' },
    );
    expect([answer.status, answer.headers.get('x-two')]).toEqual([201, 'a, b']);
    expect(await answer.json()).toEqual(['POST', 'application/json', '/keys?x=1', '3']);
  });

  it('is fetched over a new connection each time', async () => {
    const ports = new Set<number | undefined>();
    const port = await listen(
      createHttpServer((asked, answer) => {
        ports.add(asked.socket.remotePort);
        answer.end('x');
      }),
      '127.0.0.1',
    );
    const http = new OutboundHttp(LOCAL);
    await http.fetch(`http://127.0.0.1:${port}/`);
    await http.fetch(`http://127.0.0.1:${port}/`);
    expect(ports.size).toBe(2);
  });
});

describe('the connection', () => {
  it('goes to the checked address, even when the name resolves to another one later', async () => {
    const checked = createHttpServer((asked, answer) => answer.end(asked.headers.host));
    const port = await listen(checked, '127.0.0.1');
    const { server: rebound, connections } = trap();
    await listen(rebound, '::1', port);
    let lookups = 0;
    const http = new OutboundHttp(LOCAL, {
      resolve: async () => {
        lookups += 1;
        return [lookups === 1 ? '127.0.0.1' : '::1'];
      },
    });
    const answer = await http.fetch(`http://rebinding.example:${port}/`);
    expect(await answer.text()).toBe(`rebinding.example:${port}`);
    expect([lookups, connections()]).toEqual([1, 0]);
  });

  it('goes to the next checked address when the first does not answer', async () => {
    const port = await listen(
      createHttpServer((_, answer) => answer.end('here')),
      '127.0.0.1',
    );
    const http = new OutboundHttp(LOCAL, to('::1', '127.0.0.1'));
    expect(await (await http.fetch(`http://name.example:${port}/`)).text()).toBe('here');
  });

  it('refuses a certificate for another name, of another authority, or for an address', async () => {
    let requests = 0;
    const server = createHttpsServer(authority, (_, answer) => {
      requests += 1;
      answer.end();
    });
    const port = await listen(server, '127.0.0.1');
    const options = { ca: [authority.ca], ...to('127.0.0.1') };
    const cases: [OutboundHttp, string, string][] = [
      [new OutboundHttp(LOCAL, options), 'name.example', 'ERR_TLS_CERT_ALTNAME_INVALID'],
      [new OutboundHttp(LOCAL, options), '127.0.0.1', 'ERR_TLS_CERT_ALTNAME_INVALID'],
      [new OutboundHttp(LOCAL, to('127.0.0.1')), 'localhost', 'SELF_SIGNED_CERT_IN_CHAIN'],
    ];
    const environment = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    try {
      for (const [http, host, code] of cases) {
        expect(await causeOf('tls', http.fetch(`https://${host}:${port}/`))).toMatchObject({
          code,
        });
      }
    } finally {
      if (environment === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
      else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = environment;
    }
    expect(requests).toBe(0);
  });
});

describe('a response', () => {
  /** Sends a request to a server on loopback with this listener, and returns the response. */
  async function fetchFrom(listener: RequestListener, signal?: AbortSignal): Promise<Response> {
    const port = await listen(createHttpServer(listener), '127.0.0.1');
    return new OutboundHttp(LOCAL).fetch(`http://127.0.0.1:${port}/`, { signal });
  }

  it.each([301, 302, 303, 307, 308, 304, 300])(
    'of status %d is not followed as a redirect',
    async (status) => {
      const { server, connections } = trap();
      const location = `http://127.0.0.1:${await listen(server, '127.0.0.1')}/`;
      const paths: (string | undefined)[] = [];
      const reason = await causeOf(
        'redirect',
        fetchFrom((asked, answer) => {
          paths.push(asked.url);
          answer.writeHead(status, { location }).end();
        }),
      );
      expect(reason).toMatchObject({ message: 'a redirect is not followed' });
      expect([paths, connections()]).toEqual([['/'], 0]);
    },
  );

  it.each([204, 205])('of status %d has no body, also if the server sends one', async (status) => {
    const server = createServer((socket) => {
      socket.end(`HTTP/1.1 ${status} Done\r\nContent-Length: 2\r\n\r\nok`);
    });
    const port = await listen(server, '127.0.0.1');
    const answer = await new OutboundHttp(LOCAL).fetch(`http://127.0.0.1:${port}/`);
    expect([answer.status, answer.body]).toEqual([status, null]);
  });

  it('of 64 KiB is read', async () => {
    const answer = await fetchFrom((_, to_) => to_.end(Buffer.alloc(KIBIBYTES_64, 'x')));
    expect((await answer.arrayBuffer()).byteLength).toBe(KIBIBYTES_64);
  });

  it('of one byte more than 64 KiB is refused', async () => {
    expect(
      await causeOf(
        'size',
        fetchFrom((_, answer) => answer.end(Buffer.alloc(KIBIBYTES_64 + 1))),
      ),
    ).toMatchObject({ code: 'UND_ERR_RES_EXCEEDED_MAX_SIZE' });
  });

  it('without an end is aborted', async () => {
    const hungUp = Promise.withResolvers<void>();
    const reason = await causeOf(
      'size',
      fetchFrom((_, answer) => {
        const go = () => {
          while (!answer.destroyed && answer.write(Buffer.alloc(16_384)));
        };
        answer.on('drain', go).on('close', hungUp.resolve);
        go();
      }),
    );
    expect(reason).toMatchObject({ code: 'UND_ERR_RES_EXCEEDED_MAX_SIZE' });
    await hungUp.promise;
  });

  it('with compression is not inflated', async () => {
    const bomb = gzipSync(Buffer.alloc(1024 * 1024));
    const answer = await fetchFrom((_, to_) =>
      to_.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    );
    expect(Buffer.from(await answer.arrayBuffer()).equals(bomb)).toBe(true);
  });

  it('that is not HTTP fails like any other', async () => {
    const port = await listen(
      createServer((socket) => socket.end('SSH-2.0-OpenSSH_10.0\r\n')),
      '127.0.0.1',
    );
    const error = await new OutboundHttp(LOCAL)
      .fetch(`http://127.0.0.1:${port}/`)
      .catch((one: unknown) => one);
    expect(error).toBeInstanceOf(OutboundFailed);
    expect(error).toMatchObject({
      message: 'it gave no answer that can be used',
      reason: 'connection',
    });
  });

  it('is awaited no longer than the deadline of the caller', async () => {
    const reason = new Error('enough');
    const caller = new AbortController();
    const fetched = fetchFrom(() => caller.abort(reason), caller.signal);
    expect(await causeOf('time', fetched)).toBe(reason);
    expect(
      await causeOf(
        'time',
        fetchFrom(() => {}, caller.signal),
      ),
    ).toBe(reason);
  });
});

describe.concurrent('the deadline aborts', () => {
  const isTimeout = { name: 'TimeoutError' };

  it('a look-up that does not end', async () => {
    const http = new OutboundHttp(PUBLIC, { resolve: () => new Promise(() => {}) });
    expect(await causeOf('time', http.fetch('https://name.example/'))).toMatchObject(isTimeout);
  });

  it('a TLS handshake that does not end', async () => {
    const port = await listen(
      createServer(() => {}),
      '127.0.0.1',
    );
    const fetched = new OutboundHttp(LOCAL).fetch(`https://127.0.0.1:${port}/`);
    expect(await causeOf('time', fetched)).toMatchObject(isTimeout);
  });

  it('a response that does not begin', async () => {
    const port = await listen(
      createHttpServer(() => {}),
      '127.0.0.1',
    );
    const fetched = new OutboundHttp(LOCAL).fetch(`http://127.0.0.1:${port}/`);
    expect(await causeOf('time', fetched)).toMatchObject(isTimeout);
  });

  it('a response that arrives byte by byte', async () => {
    const port = await listen(
      createHttpServer((_, answer) => {
        const drip = setInterval(() => answer.write('x'), 50);
        answer.on('close', () => clearInterval(drip));
      }),
      '127.0.0.1',
    );
    const fetched = new OutboundHttp(LOCAL).fetch(`http://127.0.0.1:${port}/`);
    expect(await causeOf('time', fetched)).toMatchObject(isTimeout);
  });
});
