import { compactVerify, createLocalJWKSet, decodeProtectedHeader, errors } from 'jose';
import { z } from 'zod';
import type { Clock } from '#platform/clock/clock.js';
import { unavailable } from './sign-in-failure.js';
import type { UpstreamHttp } from '#platform/outbound/upstream-http.js';

/** The milliseconds for which a fetched key set is used before it is fetched again. */
const MOST_AGE = 300_000;
/**
 * The shortest time, in milliseconds, between two fetches for tokens that are signed by an unknown
 * key. So tokens with invented key ids cause few fetches.
 */
const RENEWAL_INTERVAL = 5_000;

const KEY_SET = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });

interface KeySet {
  readonly keys: ReturnType<typeof createLocalJWKSet>;
  readonly fetchedAt: number;
}

/** The URL of a provider's key set (JWK Set), and the algorithms of its keys. */
export interface KeySetSource {
  readonly uri: string;
  /** The algorithms with which the provider may sign. */
  readonly algorithms: readonly string[];
}

/**
 * Verifies ID tokens with the public keys of a provider (OpenID Connect Core 1.0 §10.1). If a token
 * is signed by an unknown key, the key set is fetched again, because the provider may have rotated
 * its keys (§10.1.1). This happens at most once in five seconds.
 */
export class ProviderKeys {
  #current: KeySet | undefined;
  #fetching: Promise<KeySet> | undefined;
  #renewedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly source: KeySetSource,
    private readonly http: Pick<UpstreamHttp, 'fetch'>,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {}

  /**
   * Verifies the signature of an ID token.
   *
   * @throws JOSEError if no key of the provider signed it
   * @throws DomainError upstream_unavailable if the key set cannot be fetched
   */
  async verify(idToken: string): Promise<void> {
    const set = await this.#fresh();
    try {
      await this.#check(idToken, set);
    } catch (error) {
      if (!isOfUnknownKey(error, idToken)) throw error;
      const renewed = await this.#renew(set);
      if (!renewed) throw error;
      await this.#check(idToken, renewed);
    }
  }

  async #check(idToken: string, { keys }: KeySet): Promise<void> {
    await compactVerify(idToken, keys, { algorithms: [...this.source.algorithms] });
  }

  #fresh(): Promise<KeySet> | KeySet {
    const set = this.#current;
    return set && this.clock.monotonic() - set.fetchedAt < MOST_AGE ? set : this.#fetch();
  }

  /** Returns a newer key set than the known one; undefined if it is too early for another fetch. */
  async #renew(known: KeySet): Promise<KeySet | undefined> {
    if (this.#fetching) return this.#fetching;
    if (this.#current !== known) return this.#current;
    if (this.clock.monotonic() - this.#renewedAt < RENEWAL_INTERVAL) return undefined;
    this.#renewedAt = this.clock.monotonic();
    return this.#fetch();
  }

  /** Fetches the key set. Callers at the same time share one request. */
  #fetch(): Promise<KeySet> {
    this.#fetching ??= this.#request().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #request(): Promise<KeySet> {
    try {
      const response = await this.http.fetch(this.source.uri, {
        method: 'GET',
        headers: { accept: 'application/jwk-set+json, application/json' },
      });
      if (response.status !== 200) {
        throw new Error(`the key set was answered with status ${response.status}`);
      }
      const keys = createLocalJWKSet(KEY_SET.parse(await response.json()));
      this.#current = { keys, fetchedAt: this.clock.monotonic() };
      return this.#current;
    } catch (error) {
      throw unavailable(error);
    }
  }
}

/**
 * Returns true if an unknown key may have signed a token, so that the key set must be fetched
 * again. The header of a token normally names its key by `kid`. If it does not, only a wrong
 * signature hints at an unknown key.
 */
function isOfUnknownKey(error: unknown, idToken: string): boolean {
  if (error instanceof errors.JWKSNoMatchingKey) return true;
  return (
    error instanceof errors.JWSSignatureVerificationFailed &&
    decodeProtectedHeader(idToken).kid === undefined
  );
}
