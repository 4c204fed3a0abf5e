import type { Tenancy } from './tenancy.js';
import type { UpstreamIdentity } from './upstream-identity.js';

/**
 * The secrets of one sign-in, such as the nonce. The sealed state, an encrypted token that the
 * browser carries, keeps them until the browser returns.
 */
export type Remembered = Readonly<Record<string, string>>;

/** The facts of a sign-in that sends a browser to a provider. */
export interface Departure {
  readonly state: string;
  readonly remembered: Remembered;
  /** The e-mail address that the user is expected to have, so that the provider can fill it in. */
  readonly loginHint?: string | undefined;
}

/**
 * The facts of a browser that returns from a provider: the parameters of the redirect, and the
 * content of the sealed state.
 */
export interface Arrival {
  readonly parameters: URLSearchParams;
  readonly state: string;
  readonly remembered: Remembered;
}

/** An identity provider of any protocol. Each protocol has one implementation. */
export interface UpstreamProvider {
  readonly slug: string;
  /** The name of the provider, for its button on the login page. */
  readonly name: string;
  /** The issuer as configured; the entity id of a SAML provider. */
  readonly issuer: string;
  /** The tenants that the provider serves; `NO_TENANTS` for a SAML provider. */
  readonly tenancy: Tenancy;
  /**
   * The domains of the e-mail addresses that the service believes from this provider; undefined if
   * it believes those of every domain.
   */
  readonly domains: readonly string[] | undefined;
  /** The origin of the page at the provider on which the user signs in. */
  readonly origin: string;
  /** Makes the secrets of a new sign-in, which are checked when the browser returns. */
  remember(): Remembered;
  /**
   * Returns the name of the cookie in which the browser keeps the sealed state of a sign-in. If
   * this method is missing, the state goes to the provider and comes back with the browser.
   */
  keptUnder?(remembered: Remembered): string;
  /**
   * Fetches the published documents of the provider again. After a failure, the earlier documents
   * stay in use.
   */
  refresh?(): Promise<void>;
  /** Fetches the published documents of the provider again, if their cache time is over. */
  refreshIfDue?(): Promise<void>;
  /** Returns the URL at the provider to which the browser goes to sign in. */
  depart(departure: Departure): Promise<URL>;
  /**
   * Verifies the sign-in of a returned browser and reads the identity of the user.
   *
   * @throws DomainError sign_in_failed, sign_in_refused or upstream_unavailable
   */
  arrive(arrival: Arrival): Promise<UpstreamIdentity>;
}
