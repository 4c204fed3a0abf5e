import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import proxyAddr from 'proxy-addr';

/** How many peers are known to be trusted or not. */
const MOST_PEERS = 1000;

/** Kept on the request, which asks more than once: a WeakMap of every request is work for the garbage collector. */
const ADDRESS = Symbol('client address');
type Resolved = IncomingMessage & { [ADDRESS]?: string };

/** Tells a client's address from its request. */
export type ClientAddressResolver = (request: IncomingMessage) => string | undefined;

/**
 * Makes the resolver for a list of trusted proxies (SVC_TRUSTED_PROXIES): X-Forwarded-For is walked from the right to
 * the first address that is no trusted proxy. Where the walk finds none, or something that is no address, the
 * peer's own address stands: a client cannot name itself into another's place. IPv4-mapped addresses are unmapped.
 */
export function clientAddressResolver(trustedProxies: readonly string[]): ClientAddressResolver {
  const trusted = proxyAddr.compile([...trustedProxies]);
  const trustedPeers = new Map<string, boolean>();
  /** The address at index 0 is the peer's. There are few, and each comes with many requests. */
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
    if (peer === undefined) return undefined; // the peer is gone already
    const walked = proxyAddr(request, isTrusted);
    const isClient = walked !== peer && isIP(walked) !== 0 && !trusted(walked, 0);
    const address = plain(isClient ? walked : peer);
    request[ADDRESS] = address;
    return address;
  };
}

/** The address at the other end of a connection, in its one spelling; undefined once it is gone. */
export function peerAddressOf({
  remoteAddress,
}: Pick<Socket, 'remoteAddress'>): string | undefined {
  return remoteAddress === undefined ? undefined : plain(remoteAddress);
}

/** The one spelling of an address: an IPv4-mapped one unmapped, a link-local one without its zone. */
function plain(address: string): string {
  const v4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  return v4 ?? address.replace(/%.*$/, '');
}
