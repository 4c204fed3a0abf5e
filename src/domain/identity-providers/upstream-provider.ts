import type { UpstreamIdentity } from './upstream-identity.js';

/** What one sign-in must remember until the browser is back; it travels sealed, inside the state. */
export type Remembered = Readonly<Record<string, string>>;

/** One sign-in on its way to a provider. */
export interface Departure {
  readonly state: string;
  readonly remembered: Remembered;
  /** The e-mail the person is expected to sign in with. */
  readonly loginHint?: string | undefined;
}

/** One sign-in back from a provider: what came with it, and the state it left with, already redeemed. */
export interface Arrival {
  readonly parameters: URLSearchParams;
  readonly state: string;
  readonly remembered: Remembered;
}

/** An identity provider to sign in with, whatever its protocol. One file implements one kind. */
export interface UpstreamProvider {
  readonly slug: string;
  /** The label of its button. */
  readonly name: string;
  /** The origin that the browser is sent to. */
  readonly origin: string;
  /** The secrets of a new sign-in. */
  remember(): Remembered;
  /** Where to send the browser. */
  depart(departure: Departure): Promise<URL>;
  /**
   * Who signed in.
   *
   * @throws DomainError sign_in_failed, sign_in_refused or upstream_unavailable
   */
  arrive(arrival: Arrival): Promise<UpstreamIdentity>;
}
