import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { BatchedQueries } from '#domain/oauth/grants/batched-queries.service.js';
import { TokenSigningKeys } from '#domain/oauth/token-signing/token-signing-keys.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { deriveKey } from '#platform/crypto/sealed-secret.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import {
  authenticatesAsApplication,
  mayIntrospectTokensOf,
} from '../protocol/introspection-rules.js';
import type { Client, KoaContextWithOIDC, Provider } from '../protocol/library.js';
import { Adapters } from '../storage/adapters.service.js';

type Token = InstanceType<Provider['AccessToken']> | InstanceType<Provider['ClientCredentials']>;

/** The claims of a JWT access token (RFC 9068 §2.2) that its record contains. */
export interface JwtClaims {
  readonly jti: string;
  readonly iat: number;
  readonly exp: number;
}

/** The prefix of the key under which a JWT is recorded. No opaque token begins with it. */
const HANDLE = 'jwt.';

/** The models of the library whose access tokens can be JWTs. This class records the JWTs. */
const KINDS = ['AccessToken', 'ClientCredentials'] as const;

/**
 * A text that matches no token. In a request, it replaces an expired JWT and a JWT of another
 * issuer.
 */
const NO_TOKEN = 'none';

/**
 * Records JWT access tokens (RFC 9068) like opaque ones, so that introspection, revocation and the
 * end of an account reach them. The key of a record is a MAC of the `jti`, because every resource
 * server sees the `jti`. The `jti` itself gives access to nothing.
 */
@Injectable()
export class AccessTokens {
  readonly #issuer: string;
  /**
   * The keys of the MACs: first the key under the root secret, then the key under the previous one.
   */
  readonly #handleKeys: readonly KeyObject[];
  readonly #keys: ReturnType<typeof createLocalJWKSet>;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly adapters: Adapters,
    private readonly batchedQueries: BatchedQueries,
    tokenSigningKeys: TokenSigningKeys,
  ) {
    this.#issuer = config.http.baseUrl;
    const { root, previousRoot } = config.secrets;
    this.#handleKeys = [root, previousRoot]
      .filter((secret) => secret !== undefined)
      .map((secret) => createSecretKey(deriveKey(secret, 'JWT access token handle', 32)));
    this.#keys = createLocalJWKSet(tokenSigningKeys.publicJwks());
  }

  /**
   * Records a JWT that is about to be signed. @throws InvalidGrant if its session or its client
   * does not exist any more
   */
  async record(ctx: KoaContextWithOIDC, token: Token, claims: JwtClaims): Promise<void> {
    const { jti, iat, exp } = claims;
    const { accountId, grantId, gty } = token as Partial<InstanceType<Provider['AccessToken']>>;
    const { clientId, scope, aud, jkt, extra, kind } = token;
    const bound = { jkt, 'x5t#S256': token['x5t#S256'] };
    const payload = {
      kind,
      iat,
      exp,
      clientId,
      scope,
      aud,
      ...bound,
      extra,
      accountId,
      grantId,
      gty,
    };
    await this.adapters
      .of(kind, () => ctx)
      .upsert(this.#handles(jti)[0] ?? NO_TOKEN, payload, exp - iat);
  }

  /**
   * Returns the key under which a token is stored; undefined for an expired JWT, or one of another
   * issuer.
   */
  async storedIdOf(token: string): Promise<string | undefined> {
    if (!isJwt(token)) return token;
    const jti = await this.#jtiOf(token);
    return jti === undefined ? undefined : this.#recordedHandle(jti);
  }

  /**
   * Replaces a JWT by its stored key in the fields of a request, because the library finds tokens
   * only by their stored keys, and rejects JWTs.
   */
  async replaceJwt(body: unknown): Promise<void> {
    const fields = body as Record<string, unknown> | undefined;
    const token = fields?.['token'];
    if (!fields || typeof token !== 'string') return;
    fields['token'] = (await this.storedIdOf(token)) ?? NO_TOKEN;
  }

  /**
   * Returns true if a client may introspect a token (RFC 7662 §4): its own token, or a token of
   * another application of the same user or organization.
   */
  async mayIntrospect(
    client: Client & OwnMetadata,
    token: { readonly clientId?: string | undefined },
  ): Promise<boolean> {
    if (token.clientId === client.clientId) return true;
    if (!authenticatesAsApplication(client)) return false;
    const other = await this.batchedQueries.findClient(token.clientId ?? '');
    return other !== undefined && mayIntrospectTokensOf(other, client);
  }

  /** Returns the `jti` of a valid JWT of this issuer; undefined for any other text. */
  async #jtiOf(token: string): Promise<string | undefined> {
    try {
      const { payload } = await jwtVerify(token, this.#keys, {
        issuer: this.#issuer,
        typ: 'at+jwt',
        requiredClaims: ['exp', 'jti'],
      });
      return payload.jti;
    } catch {
      return undefined;
    }
  }

  /**
   * Returns the MAC under which a JWT is recorded. While the root secret is being replaced, the MAC
   * may be one under the previous secret.
   */
  async #recordedHandle(jti: string): Promise<string | undefined> {
    const [handle, previous] = this.#handles(jti);
    if (handle === undefined || previous === undefined) return handle;
    for (const kind of KINDS) {
      if (await this.adapters.of(kind, () => undefined).find(previous)) return previous;
    }
    return handle;
  }

  #handles(jti: string): string[] {
    return this.#handleKeys.map(
      (key) => HANDLE + createHmac('sha256', key).update(jti).digest('base64url'),
    );
  }
}

/**
 * Returns true if a token has a dot, as a JWT has, and as the stored key of a JWT has, which no
 * client can know.
 */
function isJwt(token: string): boolean {
  return token.includes('.');
}
