import { createHash, randomUUID } from 'node:crypto';
import { SignJWT, UnsecuredJWT, type JWTPayload } from 'jose';
import type { TestApp } from './app.js';
import { addApplication } from './applications.js';
import { newAddress, type Answer, type Client } from './client.js';
import {
  CALLBACK,
  fapiMetadata,
  newClientKeys,
  newDpopKey,
  newPkce,
  postForm,
  type ClientKeys,
  type DpopKey,
} from './oauth-flow.js';

/** Form fields or JWT claims that replace those of a correct client; undefined removes one. */
export type Override = Readonly<Record<string, unknown>>;

/** The ways in which a JWT differs from that of a correct client. */
export interface JwtOverride {
  readonly claims?: Override;
  readonly alg?: string;
  readonly keys?: ClientKeys;
  /** Changes the JWT in its compact form, after it was signed. */
  readonly tamper?: (jwt: string) => string;
}

/** The ways in which a pushed request differs from that of a correct client. */
export interface PushOverride {
  readonly parameters?: Override;
  readonly requestObject?: JwtOverride;
  readonly assertion?: JwtOverride;
  /** Form fields that replace those of the finished request, or are added to them. */
  readonly fields?: Override;
  readonly dpop?: string;
  /**
   * True if the parameters are sent without a signature, although the client registered for signed
   * requests.
   */
  readonly unsigned?: boolean;
}

/** The ways in which a token request differs from that of a correct client. */
export interface TokenOverride {
  readonly fields?: Override;
  readonly assertion?: JwtOverride;
  /** The DPoP proof; null for a request without one. */
  readonly dpop?: string | null;
}

/**
 * A client that meets the conformance plans of FAPI 2.0: `private_key_jwt`, DPoP and PAR. For the
 * plan Message Signing, it also signs its requests.
 */
export class FapiClient {
  readonly #app: TestApp;
  readonly clientId: string;
  readonly keys: ClientKeys;
  readonly dpop: DpopKey;
  readonly isSigned: boolean;
  readonly pkce = newPkce();

  private constructor(
    app: TestApp,
    clientId: string,
    keys: ClientKeys,
    dpop: DpopKey,
    isSigned: boolean,
  ) {
    this.#app = app;
    this.clientId = clientId;
    this.keys = keys;
    this.dpop = dpop;
    this.isSigned = isSigned;
  }

  /** Registers a client to which users of its owner's organization need not consent. */
  static async register(
    app: TestApp,
    owner: string,
    plan: 'security-profile' | 'message-signing',
    metadata: Override = {},
  ): Promise<FapiClient> {
    const keys = await newClientKeys();
    const isSigned = plan === 'message-signing';
    const { clientId } = await addApplication(
      app,
      {
        ...fapiMetadata(keys),
        ...(isSigned ? { require_signed_request_object: true } : {}),
        ...metadata,
      },
      { owner },
    );
    return new FapiClient(app, clientId, keys, await newDpopKey(), isSigned);
  }

  parameters(override: Override = {}): Record<string, string> {
    return strings({
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email',
      state: 'the state',
      nonce: 'the nonce',
      code_challenge: this.pkce.challenge,
      code_challenge_method: 'S256',
      ...override,
    });
  }

  assertion({ claims = {}, ...how }: JwtOverride = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const honest = {
      iss: this.clientId,
      sub: this.clientId,
      aud: this.#app.baseUrl,
      jti: randomUUID(),
      iat: now,
      exp: now + 60,
    };
    return this.#sign({ ...honest, ...claims }, how);
  }

  requestObject(parameters: Override, { claims = {}, ...how }: JwtOverride = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const honest = {
      iss: this.clientId,
      aud: this.#app.baseUrl,
      client_id: this.clientId,
      nbf: now,
      iat: now,
      exp: now + 300,
      ...parameters,
    };
    return this.#sign({ ...honest, ...claims }, how);
  }

  /** Returns the form fields that authenticate the client (RFC 7523 §2.2). */
  async authentication(override?: JwtOverride): Promise<Record<string, string>> {
    return {
      client_id: this.clientId,
      client_assertion: await this.assertion(override),
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    };
  }

  /** Pushes an authorization request (RFC 9126 §2.1). */
  async push(override: PushOverride = {}): Promise<Answer> {
    const parameters = this.parameters(override.parameters);
    const request =
      this.isSigned && override.unsigned !== true
        ? { request: await this.requestObject(parameters, override.requestObject) }
        : parameters;
    const fields = strings({
      ...request,
      ...(await this.authentication(override.assertion)),
      ...override.fields,
    });
    const headers = override.dpop === undefined ? {} : { dpop: override.dpop };
    return postForm(this.#app, '/oauth/par', fields, headers);
  }

  /** Pushes a request that the service must accept, and returns its `request_uri`. */
  async pushed(override: PushOverride = {}): Promise<string> {
    const answer = await this.push(override);
    if (answer.status !== 201) throw new Error(`PAR answered ${answer.status}: ${answer.text}`);
    return answer.json.request_uri as string;
  }

  /**
   * Opens a pushed authorization request in a browser. Returns the callback URL to which the
   * service redirects, or the error page.
   */
  async authorize(
    browser: Client,
    requestUri: string,
    beside: Override = {},
  ): Promise<URL | Answer> {
    const query = new URLSearchParams(
      strings({ client_id: this.clientId, request_uri: requestUri, ...beside }),
    );
    const answer = await browser.get(`/oauth/authorize?${query.toString()}`, {
      address: newAddress(),
    });
    const location = answer.headers.get('location');
    return location === null ? answer : new URL(location, browser.baseUrl);
  }

  /** Returns the code of an authorization that is correct except for the given differences. */
  async code(browser: Client, override: PushOverride = {}): Promise<string> {
    const url = await this.authorize(browser, await this.pushed(override));
    if (!(url instanceof URL)) throw new Error(`the browser sees ${url.status}: ${url.text}`);
    const code = url.searchParams.get('code');
    if (code === null) throw new Error(`no code: ${url.href}`);
    return code;
  }

  /** Redeems a code at the token endpoint. Returns the whole response. */
  async redeem(code: string, override: TokenOverride = {}): Promise<Answer> {
    const fields = strings({
      grant_type: 'authorization_code',
      code,
      redirect_uri: CALLBACK,
      code_verifier: this.pkce.verifier,
      ...(await this.authentication(override.assertion)),
      ...override.fields,
    });
    const proof =
      override.dpop === undefined ? await this.proof('POST', '/oauth/token') : override.dpop;
    return postForm(this.#app, '/oauth/token', fields, proof === null ? {} : { dpop: proof });
  }

  /** Signs a DPoP proof for one request to an endpoint of the service. */
  proof(method: string, path: string, claims: Override = {}): Promise<string> {
    return this.dpop.proof(method, this.#app.baseUrl + path, claims);
  }

  /**
   * Requests userinfo with an access token. It is the protected resource of the conformance plans.
   */
  async readResource(
    token: string,
    override: { readonly proof?: string | null; readonly scheme?: string } = {},
  ): Promise<Answer> {
    const hash = createHash('sha256').update(token).digest('base64url');
    const proof =
      override.proof === undefined
        ? await this.proof('GET', '/oauth/userinfo', { ath: hash })
        : override.proof;
    return this.#app.client().get('/oauth/userinfo', {
      headers: {
        authorization: `${override.scheme ?? 'DPoP'} ${token}`,
        ...(proof === null ? {} : { dpop: proof }),
      },
    });
  }

  async #sign(
    claims: Override,
    { alg = 'ES256', keys = this.keys, tamper = (jwt) => jwt }: Omit<JwtOverride, 'claims'>,
  ): Promise<string> {
    const payload = Object.fromEntries(
      Object.entries(claims).filter(([, value]) => value !== undefined),
    ) as JWTPayload;
    if (alg === 'none') return new UnsecuredJWT(payload).encode();
    const header = { alg, kid: keys.jwk.kid ?? 'one' };
    return tamper(await new SignJWT(payload).setProtectedHeader(header).sign(keys.privateKey));
  }
}

/** Replaces the signature of a JWT by another one, which does not verify. */
export function withBrokenSignature(jwt: string): string {
  const [header, payload, signature = ''] = jwt.split('.');
  const other = signature.startsWith('A') ? 'B' : 'A';
  return [header, payload, other + signature.slice(1)].join('.');
}

function strings(values: Override): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, String(value)]),
  );
}
