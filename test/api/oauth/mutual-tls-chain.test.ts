import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectPlainly, createServer, type AddressInfo } from 'node:net';
import { connect, getCiphers, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issueAuthority } from '@svc/stand-ins/attestation-authority';
import {
  basicConstraints,
  extension,
  issueCertificate,
  keyUsage,
  type CertificateRequest,
  type GeneratedCertificate,
} from '@svc/stand-ins/certificates';
import { addApplication } from '../../support/applications.js';
import { newAddress } from '../../support/client.js';
import { startSecureApp, type SecureApp } from '../../support/secure-app.js';

const OWNER = 'owner@mtls-chain.example';
const now = new Date();
const HOUR = 3_600_000;

const root = issueAuthority('Root of the clients', now);
const intermediate = issueAuthority('Intermediate of the clients', now, root);
const withoutPath = issueAuthority('Authority of leaves alone', now, root, {
  extensions: [basicConstraints(true, 0), keyUsage('sign-certificates')],
});

/** A client's certificate followed by its intermediates, and its private key, all in PEM. */
interface Identity {
  readonly cert: string;
  readonly key: string;
}

function leaf(
  issuer: GeneratedCertificate | undefined,
  behind: readonly GeneratedCertificate[] = [],
  overrides: Partial<CertificateRequest> = {},
): Identity {
  const issued = issueCertificate(
    {
      subject: [['CN', 'client']],
      notBefore: new Date(now.getTime() - HOUR),
      notAfter: new Date(now.getTime() + HOUR),
      extensions: [basicConstraints(false)],
      ...overrides,
    },
    issuer,
  );
  return {
    cert: [issued, ...behind].map(({ pem }) => pem).join(''),
    key: issued.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** An extended key usage for servers only, in DER: SEQUENCE of id-kp-serverAuth. */
const FOR_SERVERS = extension('2.5.29.37', Buffer.from('300a06082b06010505070301', 'hex'));

describe('client certificates of authorities (RFC 8705 section 2.1)', () => {
  let secure: SecureApp;
  let clientId: string;
  beforeAll(async () => {
    secure = await startSecureApp({ SVC_MTLS_CLIENT_CA_CERTS: root.pem });
    await secure.loggedIn(OWNER);
    ({ clientId } = await addApplication(
      secure.app,
      {
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
        token_endpoint_auth_method: 'tls_client_auth',
        tls_client_auth_subject_dn: 'CN=client',
      },
      { owner: OWNER },
    ));
  });
  afterAll(() => secure.app.close());

  const port = (url: string) => Number(new URL(url).port);
  async function handshake(url: string, options: ConnectionOptions): Promise<TLSSocket> {
    const socket = connect({
      host: 'localhost',
      port: port(url),
      ca: secure.authority.ca,
      ...options,
    });
    await once(socket, 'secureConnect');
    return socket;
  }
  const status = async (presented: Identity) => {
    const form = { grant_type: 'client_credentials', client_id: clientId };
    return (await secure.post(secure.mutualTlsUrl, '/oauth/token', form, presented)).status;
  };

  it.each<readonly [string, Identity]>([
    ['signed by the root', leaf(root)],
    ['signed by an intermediate that is presented', leaf(intermediate, [intermediate])],
    ['with the root presented as well', leaf(intermediate, [intermediate, root])],
    ['below a path length that suffices', leaf(withoutPath, [withoutPath])],
  ])('10.14 accepts a certificate %s', async (_, presented) => {
    expect(await status(presented)).toBe(200);
  });

  const namesake = issueAuthority('Root of the clients', now);
  const tooDeep = issueAuthority('Below the authority of leaves', now, withoutPath);
  const noAuthority = issueAuthority('No authority', now, root, {
    extensions: [basicConstraints(false)],
  });
  const expired = issueAuthority('Expired intermediate', now, root, {
    notAfter: new Date(now.getTime() - HOUR),
  });
  const forServers = issueAuthority('Authority of servers', now, root, {
    extensions: [basicConstraints(true), keyUsage('sign-certificates'), FOR_SERVERS],
  });
  const constrained = issueAuthority('Authority of some names', now, root, {
    // Name constraints that permit a.example. They are not critical, although RFC 5280 §4.2.1.10
    // demands it.
    extensions: [
      basicConstraints(true),
      keyUsage('sign-certificates'),
      extension('2.5.29.30', Buffer.from('300fa00d300b8209612e6578616d706c65', 'hex')),
    ],
  });
  it.each<readonly [string, Identity]>([
    ['signed by itself', leaf(undefined)],
    ['of an intermediate that is not presented', leaf(intermediate)],
    ['of an authority with the name of the root', leaf(namesake)],
    ['that brings a root of its own', leaf(namesake, [namesake])],
    ['below a certificate that is no authority', leaf(noAuthority, [noAuthority])],
    ['below an expired intermediate', leaf(expired, [expired])],
    ['below a path length that is too short', leaf(tooDeep, [tooDeep, withoutPath])],
    ['below an authority of servers alone', leaf(forServers, [forServers])],
    ['below an authority that is bound to some names', leaf(constrained, [constrained])],
    ['that has expired', leaf(root, [], { notAfter: new Date(now.getTime() - 60_000) })],
    ['that is not yet valid', leaf(root, [], { notBefore: new Date(now.getTime() + 60_000) })],
    ['for servers alone', leaf(root, [], { extensions: [FOR_SERVERS] })],
    [
      'whose key may not sign data',
      leaf(root, [], { extensions: [keyUsage('sign-certificates')] }),
    ],
    [
      'with a critical extension that is unknown',
      leaf(root, [], { extensions: [extension('1.2.3.4', Buffer.of(5, 0), true)] }),
    ],
    [
      'with too many certificates behind it',
      leaf(
        root,
        Array.from({ length: 6 }, () => root),
      ),
    ],
  ])('10.14 refuses a certificate %s', async (_, presented) => {
    expect(await status(presented)).toBe(401);
  });

  it('10.14 sends no names of authorities, so that every client presents its certificate', async () => {
    // In TLS 1.2 the request for a certificate is not encrypted, so that the test can read it.
    const sent: Buffer[] = [];
    const recorder = createServer((client) => {
      const server = connectPlainly(port(secure.mutualTlsUrl), 'localhost');
      server.on('data', (chunk: Buffer) => sent.push(chunk));
      client.pipe(server).pipe(client);
      for (const socket of [client, server]) socket.on('error', () => undefined);
    }).listen(0, '127.0.0.1');
    await once(recorder, 'listening');
    const { port: recorded } = recorder.address() as AddressInfo;
    const socket = await handshake(`https://localhost:${recorded}`, { maxVersion: 'TLSv1.2' });
    socket.destroy();
    recorder.close();
    const text = Buffer.concat(sent).toString('latin1');
    // the issuer of the server's own certificate, which is sent in plain text
    expect(text).toContain('Private authority');
    expect(text).not.toContain('Root of the clients');
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    '10.14 resumes no session, so that a second connection sends its intermediate again (%s)',
    async (version) => {
      const presented = leaf(intermediate, [intermediate]);
      const only = { minVersion: version, maxVersion: version, ...presented };
      const sessions: Buffer[] = [];
      const first = await handshake(secure.mutualTlsUrl, only);
      first.on('session', (session: Buffer) => sessions.push(session));
      const early = first.getSession();
      expect((await exchange(first)).status).toBe(200);
      const session = sessions[0] ?? early;
      if (!session) throw new Error('the client has no session to resume');
      const second = await handshake(secure.mutualTlsUrl, { ...only, session });
      expect(second.isSessionReused()).toBe(false);
      expect((await exchange(second)).status).toBe(200);
    },
  );

  /** Requests a token on an existing connection, with the client certificate of the connection. */
  async function exchange(socket: TLSSocket): Promise<{ status: number }> {
    const body = `grant_type=client_credentials&client_id=${clientId}`;
    const headers = [
      'POST /oauth/token HTTP/1.1',
      `Host: localhost:${port(secure.mutualTlsUrl)}`,
      'Connection: close',
      `X-Forwarded-For: ${newAddress()}`,
      'Content-Type: application/x-www-form-urlencoded',
      `Content-Length: ${body.length}`,
    ];
    socket.write(`${headers.join('\r\n')}\r\n\r\n${body}`);
    let text = '';
    for await (const chunk of socket) text += String(chunk);
    return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]) };
  }

  const GCM = [
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES256-GCM-SHA384',
  ];
  it('10.11 offers TLS 1.2 with only the ECDHE suites of AES-GCM, on both listeners', async () => {
    const type = new X509Certificate(secure.authority.cert).publicKey.asymmetricKeyType;
    const own = GCM.filter((suite) => suite.includes(type === 'rsa' ? 'RSA' : 'ECDSA'));
    for (const url of [secure.baseUrl, secure.mutualTlsUrl]) {
      const spoken: string[] = [];
      for (const ciphers of getCiphers().map((name) => name.toUpperCase())) {
        if (ciphers.startsWith('TLS_')) continue;
        const tried = handshake(url, { maxVersion: 'TLSv1.2', ciphers: `${ciphers}:@SECLEVEL=0` });
        const socket = await tried.catch(() => undefined);
        if (!socket) continue;
        spoken.push(socket.getCipher().name);
        socket.destroy();
      }
      expect(spoken.toSorted()).toEqual(own);
    }
  });
});
