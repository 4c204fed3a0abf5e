import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { createLocalJWKSet, jwtVerify } from 'jose';
import type { KoaContextWithOIDC, Provider } from 'oidc-provider';
import { TokenSigningKeys } from '#domain/token-signing/token-signing-keys.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { deriveKey } from '#platform/crypto/sealed-secret.js';
import { Adapters } from '../storage/adapters.service.js';

type Token = InstanceType<Provider['AccessToken']> | InstanceType<Provider['ClientCredentials']>;

/** A prefix that no opaque token has. */
const HANDLE = 'jwt.';

/** Names no token: a JWT that is not ours, or has expired, is unknown. */
const NO_TOKEN = 'none';

/**
 * JWT access tokens (RFC 9068) are registered when they are minted, like any other: none can be minted for an account that is
 * gone, and introspection, revocation and de-provisioning reach them. They are kept under a handle that only we can make
 * of their `jti`: the `jti` itself, which every resource server sees, opens nothing.
 */
@Injectable()
export class AccessTokenJwts {
  readonly #issuer: string;
  readonly #handleKey: KeyObject;
  readonly #keys: ReturnType<typeof createLocalJWKSet>;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly adapters: Adapters,
    signingKeys: TokenSigningKeys,
  ) {
    this.#issuer = config.http.baseUrl;
    this.#handleKey = createSecretKey(
      deriveKey(config.secrets.root, 'JWT access token handle', 32),
    );
    this.#keys = createLocalJWKSet(signingKeys.publicJwks());
  }

  /** Registers a token that is about to be signed. @throws InvalidGrant when its session or its client is gone */
  async register(
    _ctx: KoaContextWithOIDC,
    token: Token,
    { jti, iat, exp }: { readonly jti: string; readonly iat: number; readonly exp: number },
  ): Promise<void> {
    const { accountId, grantId, gty } = token as Partial<InstanceType<Provider['AccessToken']>>;
    const { clientId, scope, aud, jkt, extra, kind } = token;
    await this.adapters.of(kind).upsert(
      this.#handle(jti),
      {
        kind,
        iat,
        exp,
        clientId,
        scope,
        aud,
        jkt,
        'x5t#S256': token['x5t#S256'],
        extra,
        accountId,
        grantId,
        gty,
      },
      exp - iat,
    );
  }

  /**
   * The handle of a token, if it is one of ours that is signed and not expired. Introspection and revocation look it up in
   * place of the token.
   */
  async handleOf(token: string): Promise<string | undefined> {
    try {
      const { payload } = await jwtVerify(token, this.#keys, {
        issuer: this.#issuer,
        typ: 'at+jwt',
        requiredClaims: ['exp', 'jti'],
      });
      return payload.jti === undefined ? undefined : this.#handle(payload.jti);
    } catch {
      return undefined; // not ours, or over: as good as unknown
    }
  }

  /** Replaces a JWT by its handle in the fields of a request: the library finds only what is stored, and refuses JWTs. */
  async replaceJwt(body: unknown): Promise<void> {
    const fields = body as Record<string, unknown> | undefined;
    const token = fields?.['token'];
    if (!fields || typeof token !== 'string' || !isStructured(token)) return;
    fields['token'] = (await this.handleOf(token)) ?? NO_TOKEN;
  }

  #handle(jti: string): string {
    return HANDLE + createHmac('sha256', this.#handleKey).update(jti).digest('base64url');
  }
}

/** Whether a token looks like a JWT, or like the handle of one, which nobody outside can know. */
export function isStructured(token: string): boolean {
  return token.includes('.');
}
