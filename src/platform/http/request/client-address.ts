import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import proxyAddr from 'proxy-addr';

/**
 * The largest number of entries in the cache of trusted proxies. Its keys are peers, which are the
 * IP addresses at the other end of connections.
 */
const MOST_PEERS = 1000;

/**
 * The key under which the client's IP address is stored on its request. A WeakMap of all requests
 * would cost time in the garbage collector.
 */
const ADDRESS = Symbol('client address');
type Resolved = IncomingMessage & { [ADDRESS]?: string };

/** Returns the IP address of a request's client; undefined after the client has disconnected. */
export type ClientAddressResolver = (request: IncomingMessage) => string | undefined;

/**
 * Makes the function that finds the client's IP address, for a list of trusted proxies
 * (SVC_TRUSTED_PROXIES). It reads X-Forwarded-For from the right to the first address that is no
 * trusted proxy. If there is none, or if an entry is malformed, the result is the address at the
 * other end of the connection. So a client cannot claim another client's address. IPv4-mapped
 * addresses become IPv4 addresses.
 */
export function clientAddressResolver(trustedProxies: readonly string[]): ClientAddressResolver {
  const trusted = proxyAddr.compile([...trustedProxies]);
  const trustedPeers = new Map<string, boolean>();
  /**
   * Returns true if an IP address is that of a trusted proxy. Index 0 is the address at the other
   * end of the connection. Its result is cached, because there are few such addresses, and each
   * sends many requests.
   */
  const isTrusted = (address: string, index: number): boolean => {
    if (index > 0) return trusted(address, index);
    let known = trustedPeers.get(address);
    if (known === undefined) {
      if (trustedPeers.size === MOST_PEERS) trustedPeers.clear();
      known = trusted(address, index);
      trustedPeers.set(address, known);
    }
    return known;
  };
  return (request: Resolved) => {
    const known = request[ADDRESS];
    if (known !== undefined) return known;
    const peer = request.socket.remoteAddress;
    if (peer === undefined) return undefined; // the peer has disconnected
    const forwarded = proxyAddr(request, isTrusted);
    const isClient = forwarded !== peer && isIP(forwarded) !== 0 && !trusted(forwarded, 0);
    const address = plain(isClient ? forwarded : peer);
    request[ADDRESS] = address;
    return address;
  };
}

/**
 * Returns the IP address at the other end of a connection, in one spelling; undefined after the
 * peer has disconnected.
 */
export function peerAddressOf({
  remoteAddress,
}: Pick<Socket, 'remoteAddress'>): string | undefined {
  return remoteAddress === undefined ? undefined : plain(remoteAddress);
}

/**
 * Normalizes an IP address: an IPv4-mapped address becomes an IPv4 address, and a link-local
 * address loses its zone.
 */
function plain(address: string): string {
  const v4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  return v4 ?? address.replace(/%.*$/, '');
}
