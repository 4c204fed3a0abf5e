import type { Tenancy } from './tenancy.js';
import type { UpstreamIdentity } from './upstream-identity.js';

/** The secrets of one sign-in. The sealed state carries them until the browser returns. */
export type Remembered = Readonly<Record<string, string>>;

/** A sign-in that goes to a provider. */
export interface Departure {
  readonly state: string;
  readonly remembered: Remembered;
  /** The expected e-mail address of the user. */
  readonly loginHint?: string | undefined;
}

/**
 * A sign-in that returned from a provider: the parameters of the redirect, and the redeemed state.
 */
export interface Arrival {
  readonly parameters: URLSearchParams;
  readonly state: string;
  readonly remembered: Remembered;
}

/** An identity provider of any protocol. One file implements one protocol. */
export interface UpstreamProvider {
  readonly slug: string;
  /** The label of the button on the login page. */
  readonly name: string;
  /** The issuer as configured; the entity id of a SAML provider. */
  readonly issuer: string;
  /** The tenants that it serves; `NO_TENANTS` for a SAML provider. */
  readonly tenancy: Tenancy;
  /** The only domains that it may vouch for; undefined: every domain. */
  readonly domains: readonly string[] | undefined;
  /** The origin of the authorization endpoint. */
  readonly origin: string;
  /** Creates the secrets of a new sign-in. */
  remember(): Remembered;
  /**
   * Returns the name under which the browser keeps the state of a sign-in. Without it, the state
   * goes to the provider and comes back with the browser.
   */
  keptUnder?(remembered: Remembered): string;
  /**
   * Reads again what the provider publishes. After a failure, what was read before stays in use.
   */
  refresh?(): Promise<void>;
  /** Reads again what the provider publishes, if its time has come. */
  refreshIfDue?(): Promise<void>;
  /** Returns the address at the provider for the browser. */
  depart(departure: Departure): Promise<URL>;
  /**
   * Verifies the returned sign-in and reads the identity.
   *
   * @throws DomainError sign_in_failed, sign_in_refused or upstream_unavailable
   */
  arrive(arrival: Arrival): Promise<UpstreamIdentity>;
}
