import { compactVerify, createLocalJWKSet, decodeProtectedHeader, errors } from 'jose';
import { z } from 'zod';
import { unavailable } from './sign-in-failure.js';
import type { UpstreamHttp } from './upstream-http.js';

/** How long a key set is used before it is fetched again, in milliseconds. */
const MOST_AGE = 300_000;
/** The least time between two fetches that an unknown key asks for, in milliseconds. */
const RENEWAL_INTERVAL = 5_000;

const KEY_SET = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });

interface KeySet {
  readonly keys: ReturnType<typeof createLocalJWKSet>;
  readonly fetchedAt: number;
}

/** The key set of a provider, as far as its checks need it. */
export interface KeySetSource {
  readonly uri: string;
  /** The algorithms that the provider may sign with. */
  readonly algorithms: readonly string[];
}

/**
 * The keys a provider signs ID tokens with (OpenID Connect Core 1.0 §10.1). A token under an unknown key fetches the key set
 * again at once, since the provider may have rotated its keys (§10.1.1), but at most once in five seconds.
 */
export class ProviderKeys {
  #current: KeySet | undefined;
  #fetching: Promise<KeySet> | undefined;
  #renewedAt = Number.NEGATIVE_INFINITY;

  /** @param now a clock that only goes forward, in milliseconds */
  constructor(
    private readonly source: KeySetSource,
    private readonly http: Pick<UpstreamHttp, 'fetch'>,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /**
   * Checks the signature of an ID token.
   *
   * @throws JOSEError where no key of the provider made it
   * @throws DomainError upstream_unavailable where the key set cannot be fetched
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
    return set && this.now() - set.fetchedAt < MOST_AGE ? set : this.#fetch();
  }

  /** A set that is newer than the given one; undefined while it is too early to fetch another. */
  async #renew(known: KeySet): Promise<KeySet | undefined> {
    if (this.#fetching) return this.#fetching;
    if (this.#current !== known) return this.#current;
    if (this.now() - this.#renewedAt < RENEWAL_INTERVAL) return undefined;
    this.#renewedAt = this.now();
    return this.#fetch();
  }

  /** All who wait for the key set share one request. */
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
        body: undefined,
        redirect: 'manual',
      });
      if (response.status !== 200) {
        throw new Error(`the key set was answered with status ${response.status}`);
      }
      const keys = createLocalJWKSet(KEY_SET.parse(await response.json()));
      this.#current = { keys, fetchedAt: this.now() };
      return this.#current;
    } catch (error) {
      throw unavailable(error);
    }
  }
}

/** Without a `kid` a signature that does not fit is the only sign of another key. */
function isOfUnknownKey(error: unknown, idToken: string): boolean {
  if (error instanceof errors.JWKSNoMatchingKey) return true;
  return (
    error instanceof errors.JWSSignatureVerificationFailed &&
    decodeProtectedHeader(idToken).kid === undefined
  );
}
