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

/** Makes a new SSH authority, and returns its public key in the SSH wire encoding. */
function newAuthority(): Buffer {
  return publicKeyBlob(generateKeyPairSync('ed25519').privateKey);
}

/**
 * A server with the three routes that a host requests. It serves the real script and real
 * revocation lists, but needs no database and has no rate limit. A test decides which list it
 * serves, and how it answers.
 */
export class RevocationServer {
  authority = newAuthority();
  list: Buffer = Buffer.alloc(0);
  /**
   * Answers the requests for the revocation list. If it is undefined, the server serves the list.
   */
  answer: RequestListener | undefined;
  /** The path and the response status of each request so far. */
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

  /**
   * From now on, serves a revocation list with this number and these serials. Returns its bytes.
   */
  publish(number: number, serials: readonly number[] = [], authority = this.authority): Buffer {
    return this.publishSections(number, [{ authority, serials }]);
  }

  /**
   * From now on, serves a revocation list with this number and one section for each authority.
   * Returns its bytes.
   */
  publishSections(number: number, authorities: readonly RevokedOfAuthority[]): Buffer {
    const comment = 'ssh-ca@example.com';
    const generatedAt = new Date();
    const list = { number: BigInt(number), generatedAt, comment, ranges: NO_RUNS, authorities };
    return (this.list = encodeKeyRevocationList(list));
  }

  /** Replaces the SSH authority by a new one. */
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
