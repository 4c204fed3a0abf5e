/** The time limits for a client, in milliseconds. */
export interface EdgeTimeouts {
  /** The time for the TLS handshake. */
  readonly handshake: number;
  /** The time for the head of a request, and the time from the connection to the first request. */
  readonly headers: number;
  /** The time for a request, from its head to the end of its response. */
  readonly request: number;
  /** The time between two requests of a connection. */
  readonly keepAlive: number;
  /**
   * The time in which a client can still read a response that was sent before its whole request had
   * arrived.
   */
  readonly linger: number;
}

/** The time limits in production and in the demo. Tests use shorter limits. */
export const EDGE_TIMEOUTS: EdgeTimeouts = {
  handshake: 10_000,
  headers: 10_000,
  request: 30_000,
  keepAlive: 65_000, // above the 60 s of common load balancers, which should close first
  linger: 5_000,
};
