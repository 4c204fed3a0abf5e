import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRemoteJWKSet, jwtVerify, type JWTPayload } from 'jose';
import { makeTlsAuthority } from './tls-authority.js';

/**
 * The settings of the API server. They have the meaning of the `--oidc-*` flags of kube-apiserver.
 */
export interface OidcFlags {
  /** The value of `--oidc-issuer-url`. kube-apiserver requires https, and the stand-in does not. */
  readonly issuer: string;
  /** The value of `--oidc-client-id`, which is the audience. */
  readonly audience: string;
  /** The organization that a token must have, from `--oidc-required-claim=org_id=…`. */
  readonly organization: string;
}

/** A running stand-in for the API server of a Kubernetes cluster. */
export interface KubernetesApi {
  /** The URL that `kubectl` must use. */
  readonly url: string;
  /** The certificate of the authority that signed the API server's certificate, in PEM. */
  readonly ca: string;
  /** For each request in order: the claims of an accepted token, or the reason of the refusal. */
  readonly seen: (JWTPayload | string)[];
  close(): Promise<void>;
}

/**
 * Starts an API server with TLS that verifies Bearer tokens as kube-apiserver does with OIDC. It
 * uses the discovery document and the JWKS of the issuer. Its further flags would be
 * `--oidc-signing-algs=ES256`, `--oidc-username-claim=email` and
 * `--oidc-required-claim=client_id=svc-cli`. With a valid token it serves only `GET /version`.
 */
export async function startKubernetesApi(flags: OidcFlags): Promise<KubernetesApi> {
  const { ca, key, cert } = makeTlsAuthority();
  const seen: KubernetesApi['seen'] = [];
  const server = createServer({ key, cert }, (request, response) => {
    void answer(request, response);
  });
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    try {
      seen.push(await authenticate(request.headers.authorization, flags));
    } catch (error) {
      seen.push(String(error));
      send(response, 401, UNAUTHORIZED);
      return;
    }
    const isVersion = request.method === 'GET' && request.url === '/version';
    if (isVersion) send(response, 200, VERSION);
    else
      send(response, 404, { ...UNAUTHORIZED, message: 'not found', reason: 'NotFound', code: 404 });
  };
  await new Promise<void>((done) => server.listen(0, 'localhost', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://localhost:${port}`,
    ca,
    seen,
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
}

/**
 * Verifies the Bearer token in an `Authorization` header, and returns its claims.
 *
 * @throws Error with the reason of a refusal
 */
async function authenticate(
  header: string | undefined,
  { issuer, audience, organization }: OidcFlags,
) {
  const [, token] = /^Bearer (\S+)$/.exec(header ?? '') ?? [];
  if (token === undefined) throw new Error('no Bearer token');
  const discovery = (await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()) as {
    readonly issuer: string;
    readonly jwks_uri: string;
  };
  if (discovery.issuer !== issuer) throw new Error('another issuer');
  const keys = createRemoteJWKSet(new URL(discovery.jwks_uri));
  const { payload } = await jwtVerify(token, keys, { issuer, audience, algorithms: ['ES256'] });
  if (payload.exp === undefined) throw new Error('no exp');
  if (typeof payload['email'] !== 'string') throw new Error('no email');
  if (payload['email_verified'] === false) throw new Error('the email is not verified');
  if (payload['client_id'] !== 'svc-cli') throw new Error('another client');
  if (payload['org_id'] !== organization) throw new Error('another organization');
  return payload;
}

const VERSION = { major: '1', minor: '34', gitVersion: 'v1.34.0', platform: 'linux/amd64' };

const UNAUTHORIZED = {
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: 'Unauthorized',
  reason: 'Unauthorized',
  code: 401,
};

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
