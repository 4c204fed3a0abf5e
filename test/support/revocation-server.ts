import { generateKeyPairSync } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  publicKeyBlob,
  publicKeyLine,
  encodeKeyRevocationList,
  type RevokedOfAuthority,
  NO_RUNS,
} from '@svc/openssh';
import { entityTag } from '#platform/http/request/entity-tag.js';
import { hostScript } from '../../src/features/install/host-script.js';

const KRL = '/v1/credentials/ssh/krl';

/** Makes the public key of a new certificate authority, in the SSH wire encoding. */
function newAuthority(): Buffer {
  return publicKeyBlob(generateKeyPairSync('ed25519').privateKey);
}

/**
 * A server with the three routes that an SSH host requests: with the real script and real
 * revocation lists, but without a database or a rate limit. A test decides which list it serves and
 * how it answers.
 */
export class RevocationServer {
  authority = newAuthority();
  list: Buffer = Buffer.alloc(0);
  /** Answers the requests for the list instead of the server; undefined for a normal answer. */
  answer: RequestListener | undefined;
  /** The paths of the requests so far, with the status of the answers. */
  readonly requests: string[] = [];

  private constructor(private readonly server: Server) {}

  static async start(): Promise<RevocationServer> {
    const server = createServer();
    const started = new RevocationServer(server);
    server.on('request', (request, response) => {
      response.on('finish', () => started.requests.push(`${response.statusCode} ${request.url}`));
      started.#respond(request, response);
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    started.publish(1);
    return started;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get script(): string {
    return hostScript(this.baseUrl);
  }

  get authorityLine(): string {
    return `${publicKeyLine(this.authority, 'ssh-ca@example.com')}\n`;
  }

  /** Serves a revocation list with this number from now on, and returns its bytes. */
  publish(number: number, serials: readonly number[] = [], authority = this.authority): Buffer {
    return this.publishSections(number, [{ authority, serials }]);
  }

  /**
   * Serves a revocation list with this number and these sections from now on, and returns its
   * bytes.
   */
  publishSections(number: number, authorities: readonly RevokedOfAuthority[]): Buffer {
    const comment = 'ssh-ca@example.com';
    const generatedAt = new Date();
    const list = { number: BigInt(number), generatedAt, comment, ranges: NO_RUNS, authorities };
    return (this.list = encodeKeyRevocationList(list));
  }

  /** Replaces the certificate authority by another one. */
  changeAuthority(): void {
    this.authority = newAuthority();
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  #respond: RequestListener = (request, response) => {
    if (request.url === '/install-host.sh') response.end(this.script);
    else if (request.url === '/v1/credentials/ssh/ca') response.end(this.authorityLine);
    else if (request.url !== KRL) response.writeHead(404).end();
    else if (this.answer) this.answer(request, response);
    else if (request.headers['if-none-match'] === entityTag(this.list))
      response.writeHead(304).end();
    else response.end(this.list);
  };
}
