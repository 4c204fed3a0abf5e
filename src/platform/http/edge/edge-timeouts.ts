/** The times that a client has, in milliseconds. */
export interface EdgeTimeouts {
  /** For its TLS handshake. */
  readonly handshake: number;
  /** Milliseconds for the head of a request, and from the connection to the first request. */
  readonly headers: number;
  /** Milliseconds for a request, from its head to the end of its response. */
  readonly request: number;
  /** Between two requests of a connection. */
  readonly keepAlive: number;
  /**
   * Milliseconds in which a client can read a response that came before the client had sent its
   * whole request.
   */
  readonly linger: number;
}

/** The times of every composition except the tests', which use shorter ones. */
export const EDGE_TIMEOUTS: EdgeTimeouts = {
  handshake: 10_000,
  headers: 10_000,
  request: 30_000,
  keepAlive: 65_000, // above the 60 s of common load balancers, which should close first
  linger: 5_000,
};
