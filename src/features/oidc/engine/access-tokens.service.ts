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

/** The claims of a JWT access token (RFC 9068 §2.2) that are stored in its record. */
export interface JwtClaims {
  readonly jti: string;
  readonly iat: number;
  readonly exp: number;
}

/**
 * The prefix of the id under which a JWT is recorded. No opaque token begins with it, so that no
 * opaque token can be the id of a JWT.
 */
const ID_PREFIX = 'jwt.';

/**
 * The models (kinds of records) of the OAuth library whose access tokens can be JWTs. This class
 * records the JWTs.
 */
const KINDS = ['AccessToken', 'ClientCredentials'] as const;

/**
 * A text that matches no token. It replaces an expired JWT and a JWT of another issuer in a
 * request, so that the OAuth library finds nothing.
 */
const NO_TOKEN = 'none';

/**
 * Records JWT access tokens (RFC 9068) in the same table as opaque ones, so that introspection,
 * revocation and the end of an account also apply to them. The id of a record is a MAC of the claim
 * `jti`. It is not the `jti` itself, because every resource server sees the `jti` and could send it
 * as an opaque token.
 */
@Injectable()
export class AccessTokens {
  readonly #issuer: string;
  /**
   * The keys of the MACs that are the ids of recorded JWTs. The first key comes from the root
   * secret. The second key comes from the previous root secret, if one is configured.
   */
  readonly #idKeys: readonly KeyObject[];
  readonly #keys: ReturnType<typeof createLocalJWKSet>;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly adapters: Adapters,
    private readonly batchedQueries: BatchedQueries,
    tokenSigningKeys: TokenSigningKeys,
  ) {
    this.#issuer = config.http.baseUrl;
    const { root, previousRoot } = config.secrets;
    this.#idKeys = [root, previousRoot]
      .filter((secret) => secret !== undefined)
      .map((secret) => createSecretKey(deriveKey(secret, 'JWT access token handle', 32)));
    this.#keys = createLocalJWKSet(tokenSigningKeys.publicJwks());
  }

  /**
   * Records a JWT that is about to be signed.
   * @throws InvalidGrant if its session or its client does not exist any more
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
      .upsert(this.#ids(jti)[0] ?? NO_TOKEN, payload, exp - iat);
  }

  /**
   * Returns the id under which an access token is recorded. For an opaque token it is the token
   * itself. It is undefined for an expired JWT, or a JWT of another issuer.
   */
  async recordedIdOf(token: string): Promise<string | undefined> {
    if (!isJwt(token)) return token;
    const jti = await this.#jtiOf(token);
    return jti === undefined ? undefined : this.#recordedId(jti);
  }

  /**
   * Replaces a JWT in the field `token` of a parsed form, in place, by the id under which the JWT
   * is recorded. The OAuth library finds tokens only by that id and refuses JWTs. An opaque token
   * stays. For an expired JWT, or a JWT of another issuer, the field becomes a text that matches no
   * token.
   */
  async replaceJwt(body: unknown): Promise<void> {
    const fields = body as Record<string, unknown> | undefined;
    const token = fields?.['token'];
    if (!fields || typeof token !== 'string') return;
    fields['token'] = (await this.recordedIdOf(token)) ?? NO_TOKEN;
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
   * Returns the id under which a JWT is recorded. The id depends on the root secret. While the root
   * secret is being replaced, a JWT may have an id from the second configured secret. So this
   * method looks for a record with that id first.
   */
  async #recordedId(jti: string): Promise<string | undefined> {
    const [id, previous] = this.#ids(jti);
    if (id === undefined || previous === undefined) return id;
    for (const kind of KINDS) {
      if (await this.adapters.of(kind, () => undefined).find(previous)) return previous;
    }
    return id;
  }

  #ids(jti: string): string[] {
    return this.#idKeys.map(
      (key) => ID_PREFIX + createHmac('sha256', key).update(jti).digest('base64url'),
    );
  }
}

/**
 * Returns true if a token contains a dot. Every JWT contains one, and no opaque token does. The id
 * of a recorded JWT also contains a dot, so that a client that sends this id as a token finds
 * nothing.
 */
function isJwt(token: string): boolean {
  return token.includes('.');
}
