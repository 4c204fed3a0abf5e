/** How long a client may take, in milliseconds. */
export interface EdgeTimeouts {
  /** Over its TLS handshake. */
  readonly handshake: number;
  /** Over the head of a request, and before its first one. */
  readonly headers: number;
  /** A request, from its head to the end of its answer. */
  readonly request: number;
  /** Between two requests of a connection. */
  readonly keepAlive: number;
  /** To read an answer that came before it had sent its whole request. */
  readonly linger: number;
}

/** Those of every composition but the tests', which have no time. */
export const EDGE_TIMEOUTS: EdgeTimeouts = {
  handshake: 10_000,
  headers: 10_000,
  request: 30_000,
  keepAlive: 65_000, // above the 60 s of the usual load balancers: it is they who should hang up
  linger: 5_000,
};
