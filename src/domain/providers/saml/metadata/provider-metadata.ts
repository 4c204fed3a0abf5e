import { Logger } from '@nestjs/common';
import { MetadataFault, readIdpMetadata, type IdpMetadata } from './idp-metadata.js';
import type { Clock } from '#platform/clock/clock.js';
import type { SamlProviderConfig } from '#platform/config/config.js';
import { fetchFault, type UpstreamHttp } from '#platform/outbound/upstream-http.js';
import { unavailable } from '../../openid/sign-in-failure.js';

/**
 * The shortest time, in milliseconds, between two fetches for responses that are signed by an
 * unknown key. Without this limit, any client could cause many fetches by such responses.
 */
const RENEWAL_INTERVAL = 60_000;
/** The milliseconds after which metadata that could not be read is requested again. */
const RETRY_INTERVAL = 300_000;
/**
 * The most requests that wait at once for a fetch because their response is signed by an unknown
 * key. The number is small, because each request holds its message in memory.
 */
const MOST_WAITING = 64;

/** The settings of a provider by which its metadata is fetched and logged. */
type MetadataSettings = Pick<SamlProviderConfig, 'slug' | 'metadataUrl'>;

interface MetadataParts {
  readonly http: Pick<UpstreamHttp, 'fetch'>;
  readonly clock: Clock;
}

/**
 * The metadata of one SAML provider, as this process knows it. It is read again if its
 * cacheDuration is over, and if a response is signed by an unknown key. If a fetch fails, or the
 * document names another provider, the present metadata stays in use until its validUntil.
 */
export class SamlMetadata {
  readonly entityId: string;
  /**
   * The origin of the provider's single sign-on service. It must be known from the start on,
   * because the header Content-Security-Policy names it.
   */
  readonly origin: string;
  readonly #log = new Logger('upstream');
  #fetching: Promise<void> | undefined;
  #fetchedAt: number;
  /**
   * The time of the last fetch after the one at the start. The fetch at the start is not counted.
   * Otherwise a response with an unknown key in the first minute could not cause a fetch.
   */
  #fetchedAgainAt = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  #waiting = 0;

  private constructor(
    private readonly settings: MetadataSettings,
    private readonly parts: MetadataParts,
    private current: IdpMetadata,
  ) {
    this.entityId = current.entityId;
    this.origin = new URL(current.ssoUrl).origin;
    this.#fetchedAt = parts.clock.monotonic();
  }

  /**
   * Fetches the metadata for the first time.
   *
   * @throws MetadataFault
   */
  static async open(settings: MetadataSettings, parts: MetadataParts): Promise<SamlMetadata> {
    return new SamlMetadata(settings, parts, await fetchMetadata(settings, parts));
  }

  /** True if the provider refuses a request that is not signed. */
  get wantsSignedRequests(): boolean {
    return this.current.wantsSignedRequests;
  }

  /**
   * Returns the metadata. If its cacheDuration is over, it is read again first.
   *
   * @throws DomainError upstream_unavailable if the metadata has expired
   */
  async fresh(): Promise<IdpMetadata> {
    // After a failed read, sign-ins do not wait for another read, because it may take as long to
    // fail.
    if (!this.#hasFailed) await this.refreshIfDue();
    return this.valid();
  }

  /**
   * Returns the metadata without a fetch, unless it has expired.
   *
   * @throws DomainError upstream_unavailable if the metadata has expired and cannot be fetched
   */
  async valid(): Promise<IdpMetadata> {
    if (this.#hasEnded()) await this.#ask();
    if (!this.#hasEnded()) return this.current;
    throw unavailable(
      new MetadataFault('the SAML metadata is out of date: its validUntil is past'),
    );
  }

  /**
   * Reads the metadata again, because a response is signed by none of its keys. In one process, all
   * requests share one fetch, at most once a minute.
   *
   * @returns the metadata if it has a key that `known` lacks; otherwise undefined
   */
  async withOtherKeys(known: IdpMetadata): Promise<IdpMetadata | undefined> {
    if (this.current === known) await this.#ask();
    const { keys } = this.current;
    const isOther = keys.some((key) => !known.keys.some((one) => one.equals(key)));
    return isOther ? this.current : undefined;
  }

  /**
   * Reads the metadata again if its cacheDuration is over, or if the last read failed a while ago.
   */
  async refreshIfDue(): Promise<void> {
    const age = this.parts.clock.monotonic() - this.#fetchedAt;
    if (age >= (this.#hasFailed ? RETRY_INTERVAL : this.current.cacheFor)) await this.refresh();
  }

  /**
   * Reads the metadata again. Callers at the same time share one request. After a failure, which is
   * logged once, the present metadata stays in use.
   */
  refresh(): Promise<void> {
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  /**
   * Reads the metadata again for a sign-in, at most once a minute. It does nothing if {@link
   * MOST_WAITING} sign-ins wait already.
   */
  async #ask(): Promise<void> {
    const age = this.parts.clock.monotonic() - this.#fetchedAgainAt;
    if (!this.#fetching && age < RENEWAL_INTERVAL) return;
    if (this.#waiting >= MOST_WAITING) return;
    this.#waiting += 1;
    try {
      await this.refresh();
    } finally {
      this.#waiting -= 1;
    }
  }

  async #fetch(): Promise<void> {
    this.#fetchedAt = this.parts.clock.monotonic();
    this.#fetchedAgainAt = this.#fetchedAt;
    try {
      const metadata = await fetchMetadata(this.settings, this.parts);
      if (metadata.entityId !== this.entityId) {
        throw new MetadataFault('names another entityID than at the start; restart the service');
      }
      if (new URL(metadata.ssoUrl).origin !== this.origin) {
        throw new MetadataFault(
          'has a SingleSignOnService at another origin than at the start; restart the service',
        );
      }
      this.current = metadata;
      this.#hasFailed = false;
    } catch (error) {
      if (!(error instanceof MetadataFault)) throw error;
      if (!this.#hasFailed) {
        const reason = `the metadata ${error.message}`;
        const provider = this.settings.slug;
        this.#log.warn({ provider, reason }, 'The previous SAML metadata stays in use');
      }
      this.#hasFailed = true;
    }
  }

  #hasEnded(): boolean {
    return this.current.validUntil <= this.parts.clock.milliseconds();
  }
}

/**
 * Fetches the metadata document of a provider and reads it.
 *
 * @throws MetadataFault
 */
export async function fetchMetadata(
  { metadataUrl }: Pick<SamlProviderConfig, 'metadataUrl'>,
  { http, clock }: MetadataParts,
): Promise<IdpMetadata> {
  const response = await http
    .fetch(metadataUrl, { headers: { accept: 'application/samlmetadata+xml, application/xml' } })
    .catch((error: unknown) => {
      throw new MetadataFault(`could not be fetched: ${fetchFault(error)}`);
    });
  if (response.status !== 200) {
    const redirect = response.status >= 300 && response.status < 400;
    const hint = redirect ? '; redirects are not followed, so name the final URL' : '';
    throw new MetadataFault(`was answered with status ${response.status}${hint}`);
  }
  return readIdpMetadata(await response.text(), metadataUrl, clock.milliseconds());
}
