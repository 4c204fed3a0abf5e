import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import {
  createServer,
  request,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { startTestApp, type TestApp, type TestAppOptions } from './app.js';
import { Client, leadTo } from './client.js';
import { freePort } from './free-port.js';
import { makeTemporaryDirectory, removeDirectory } from './temporary-directory.js';
import { makeTlsAuthority } from './tls-authority.js';

/** The public URL of the service in the guides. */
export const PUBLIC_URL = 'https://login.example.com';
/** The IP address and port at which the service in the guides listens behind its proxy. */
const LISTEN = '127.0.0.1:3000';

/**
 * Makes the service reachable by the host name of the guides, as in production: a proxy ends TLS
 * and forwards to the service. So a test can run the commands of a guide unchanged.
 *
 * The name has no DNS entry. Programs reach it by the variables in {@link PublicName.env}. They
 * name a proxy on this machine, and the authority that signed the certificate.
 */
export class PublicName {
  #target = 0;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Duplex>();

  private constructor(
    private readonly folder: string,
    /** The variables by which curl, Node, Python and Go reach the name. */
    readonly env: Readonly<Record<string, string>>,
  ) {}

  static async open(): Promise<PublicName> {
    const folder = await makeTemporaryDirectory();
    const authority = makeTlsAuthority('Authority of the guides', [new URL(PUBLIC_URL).hostname]);
    const file = join(folder, 'ca.pem');
    writeFileSync(file, authority.ca);
    const proxyPort = await freePort();
    const proxy = `http://127.0.0.1:${proxyPort}`;
    const name = new PublicName(folder, {
      http_proxy: proxy,
      https_proxy: proxy,
      HTTPS_PROXY: proxy,
      NODE_USE_ENV_PROXY: '1',
      CURL_CA_BUNDLE: file,
      SSL_CERT_FILE: file,
      REQUESTS_CA_BUNDLE: file,
      NODE_EXTRA_CA_CERTS: file,
    });
    const tls = createSecureServer({ key: authority.key, cert: authority.cert });
    tls.on('request', (asked, answer) => name.#forward(asked, answer, name.#target));
    await name.#listen(tls, 0);
    const plain = createServer((asked, answer) => {
      const { host, port } = new URL(asked.url ?? '');
      name.#forward(asked, answer, host === LISTEN ? name.#target : Number(port));
    });
    const { port } = tls.address() as AddressInfo;
    plain.on('connect', ({ url }: IncomingMessage, socket: Socket) => {
      const isPublic = url === `${new URL(PUBLIC_URL).hostname}:443`;
      name.#tunnel(socket, isPublic ? port : Number(url?.split(':').at(-1)));
    });
    await name.#listen(plain, proxyPort);
    return name;
  }

  /** The IP address and port at which the service behind the name listens. */
  get listener(): string {
    return `127.0.0.1:${this.#target}`;
  }

  /** Makes the proxy forward to the service on a port of 127.0.0.1. */
  lead(port: number): void {
    this.#target = port;
    leadTo(PUBLIC_URL, `http://127.0.0.1:${port}`);
  }

  /**
   * Starts an application behind the name. Its clients send requests directly to the application,
   * with the public name as their host.
   */
  async startApp(options: TestAppOptions = {}): Promise<TestApp> {
    const port = await freePort();
    const app = await startTestApp({
      ...options,
      environment: {
        SVC_BASE_URL: PUBLIC_URL,
        SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
        SVC_TRUSTED_PROXIES: '127.0.0.1',
        ...options.environment,
      },
    });
    this.lead(port);
    const client = () => new Client(PUBLIC_URL);
    return {
      ...app,
      baseUrl: PUBLIC_URL,
      client,
      async enrolled(email) {
        const [browser, key] = [client(), app.newKey()];
        await browser.signIn(email);
        const answer = await browser.enroll(key);
        if (answer.status !== 200) throw new Error(`enrollment failed: ${answer.text}`);
        return { client: browser, key };
      },
    };
  }

  /**
   * Makes `fetch` in this process reach the name, for stand-ins that run in this process.
   *
   * @returns a function that restores the original `fetch`
   */
  answerFetches(): () => void {
    const { fetch: plain } = globalThis;
    globalThis.fetch = async (input, init) => {
      const url = new URL(input instanceof Request ? input.url : input);
      if (url.origin !== PUBLIC_URL) return plain(input, init);
      const path = `${url.pathname}${url.search}`;
      const { status, headers, text } = await new Client(PUBLIC_URL).send('GET', path);
      return new Response(text, { status, headers });
    };
    return () => {
      globalThis.fetch = plain;
    };
  }

  async close(): Promise<void> {
    leadTo(PUBLIC_URL, undefined);
    this.#sockets.forEach((socket) => socket.destroy());
    await Promise.all(
      this.#servers.map(async (server) => {
        const closed = once(server, 'close');
        server.close();
        server.closeAllConnections();
        await closed;
      }),
    );
    await removeDirectory(this.folder);
  }

  async #listen(server: Server, port: number): Promise<void> {
    this.#servers.push(server);
    await once(server.listen(port, '127.0.0.1'), 'listening');
  }

  /** Forwards a request with its original `Host` header, as the proxies of the guide do. */
  #forward(asked: IncomingMessage, answer: ServerResponse, port: number): void {
    const { method, headers, url = '/' } = asked;
    const path = url.startsWith('/') ? url : url.slice(new URL(url).origin.length);
    const address = headers['x-forwarded-for'] ?? '127.0.0.1';
    const onward = request(
      {
        host: '127.0.0.1',
        port,
        method,
        path,
        headers: { ...headers, 'x-forwarded-for': address },
      },
      (received) => {
        answer.writeHead(received.statusCode ?? 502, received.headers);
        received.pipe(answer);
      },
    );
    onward.on('error', () => answer.writeHead(502).end());
    asked.pipe(onward);
  }

  #tunnel(socket: Socket, port: number): void {
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    for (const end of [socket, onward]) {
      this.#sockets.add(end);
      end.on('error', () => [socket, onward].forEach((each) => each.destroy()));
      end.on('close', () => this.#sockets.delete(end));
    }
  }
}
