import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddr from 'proxy-addr';

/** Tells a client's address from its request. */
export type ClientAddressResolver = (request: IncomingMessage) => string | undefined;

/**
 * Makes the resolver for a list of trusted proxies (SVC_TRUSTED_PROXIES): X-Forwarded-For is walked from the right to
 * the first address that is no trusted proxy. Where the walk finds none, or something that is no address, the
 * peer's own address stands: a client cannot name itself into another's place. IPv4-mapped addresses are unmapped.
 */
export function clientAddressResolver(trustedProxies: readonly string[]): ClientAddressResolver {
  const trusted = proxyAddr.compile([...trustedProxies]);
  /** A request that is limited and audited asks twice, and its answer does not change. */
  const resolved = new WeakMap<IncomingMessage, string>();
  return (request) => {
    const known = resolved.get(request);
    if (known !== undefined) return known;
    const peer = request.socket.remoteAddress;
    if (peer === undefined) return undefined; // the peer is gone already
    const walked = proxyAddr(request, trusted);
    const isClient = walked !== peer && isIP(walked) !== 0 && !trusted(walked, 0);
    const address = plain(isClient ? walked : peer);
    resolved.set(request, address);
    return address;
  };
}

/** The one spelling of an address: an IPv4-mapped one unmapped, a link-local one without its zone. */
function plain(address: string): string {
  const v4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  return v4 ?? address.replace(/%.*$/, '');
}
