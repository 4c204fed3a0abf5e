import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer, request, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issueAuthority } from '@svc/stand-ins/attestation-authority';
import { basicConstraints, issueCertificate } from '@svc/stand-ins/certificates';
import { clientCertificateOf } from '../../../src/platform/http/request/client-certificate.js';
import { makeTlsAuthority } from '../../support/tls-authority.js';

const server = makeTlsAuthority();
const authority = issueAuthority('Authority of the clients', new Date());

/** Creates a client certificate with its key, both in PEM. */
function identity(issuer?: typeof authority): { cert: string; key: string } {
  const issued = issueCertificate(
    {
      subject: [['CN', 'client']],
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() + 3_600_000),
      extensions: [basicConstraints(false)],
    },
    issuer,
  );
  const key = issued.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { cert: issued.pem, key };
}

/**
 * What a request's connection reports: the client certificate, and whether the TLS session was
 * resumed. `presentedBehind` is 1 if the client also presented its issuer's certificate, else 0.
 */
interface Seen {
  readonly certificate?: string | undefined;
  readonly presentedBehind?: number | undefined;
  readonly resumed?: boolean | undefined;
}

const listening: Server[] = [];

/**
 * Starts a server that responds with what it knows about the client certificate.
 * @returns its port
 */
async function listen(asking?: ServerOptions): Promise<number> {
  const answer: Parameters<typeof createHttpServer>[1] = (asked, answered) => {
    const found = clientCertificateOf(asked);
    const seen: Seen = {
      certificate: found?.toString(),
      presentedBehind: found && (found.issuerCertificate ? 1 : 0),
      resumed: asking && (asked.socket as TLSSocket).isSessionReused(),
    };
    answered.setHeader('connection', 'close').end(JSON.stringify(seen));
  };
  const started = asking
    ? createServer({ key: server.key, cert: server.cert, ...asking }, answer)
    : createHttpServer(answer);
  listening.push(started);
  started.listen(0, '127.0.0.1');
  await once(started, 'listening');
  return (started.address() as AddressInfo).port;
}

/**
 * Sends one request.
 * @returns what the server knows about the client certificate
 */
async function ask(port: number, options: object): Promise<{ seen: Seen }> {
  const sent = request({ host: 'localhost', port, ca: server.ca, agent: false, ...options });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [AsyncIterable<Buffer>];
  let text = '';
  for await (const chunk of answer) text += chunk.toString();
  return { seen: JSON.parse(text) as Seen };
}

describe('the client certificate of a request', () => {
  const known = identity(authority);
  const selfSigned = identity();
  let port: number;
  beforeAll(async () => {
    port = await listen({ requestCert: true, rejectUnauthorized: false, ca: [] });
  });
  afterAll(() => {
    for (const one of listening) one.close();
  });

  it.each([
    ['of an authority', known, 0],
    ['with the authority behind it', { ...known, cert: known.cert + authority.pem }, 1],
    ['that it signed itself', selfSigned, 0],
  ])('is the one that the client presented: one %s', async (_, presented, presentedBehind) => {
    const { seen } = await ask(port, presented);
    const certificate = new X509Certificate(presented.cert).toString();
    expect(seen).toEqual({ certificate, presentedBehind, resumed: false });
  });

  it('is absent when the client presented none', async () => {
    expect((await ask(port, {})).seen).toEqual({ resumed: false });
  });

  it('is absent on a listener that requests none', async () => {
    expect((await ask(await listen({}), known)).seen).toEqual({ resumed: false });
  });

  it('is absent without TLS, even when a header contains one', async () => {
    const plain = await listen();
    const headers = {
      'x-client-cert': encodeURIComponent(known.cert),
      'x-ssl-client-verify': 'SUCCESS',
      'client-cert': `:${Buffer.from(known.cert).toString('base64')}:`,
    };
    const answer = await fetch(`http://127.0.0.1:${plain}/`, { headers });
    expect(await answer.json()).toEqual({});
  });
});
