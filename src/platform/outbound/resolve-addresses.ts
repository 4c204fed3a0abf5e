import { Resolver } from 'node:dns/promises';

/**
 * The error codes for a name that has no IPv4 or no IPv6 address. The codes stand for valid
 * responses of the DNS, and not for faults.
 */
const NO_ADDRESS: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND']);

/**
 * Returns every IPv4 and IPv6 address of a name in the DNS; for `localhost`, loopback (RFC 6761
 * §6.3). Unlike `dns.lookup`, it does not wait in one of Node's four worker threads. There, a slow
 * name server that a client chose could delay all other work of these threads.
 *
 * @param signal ends the look-up
 * @param servers name servers as `address:port`; the default is those of the system
 * @returns an empty list for a name without addresses
 * @throws the resolver's error if it got no response for either kind of address
 */
export async function resolveAddresses(
  hostname: string,
  signal: AbortSignal,
  servers?: readonly string[],
): Promise<string[]> {
  if (/^(?:.+\.)?localhost\.?$/i.test(hostname)) return ['127.0.0.1', '::1'];
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: 1000, tries: 2 });
  if (servers) resolver.setServers(servers);
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const found = await Promise.all([
      orNone(resolver.resolve4(hostname)),
      orNone(resolver.resolve6(hostname)),
    ]);
    return found.flat();
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

function orNone(addresses: Promise<string[]>): Promise<string[]> {
  return addresses.catch((error: NodeJS.ErrnoException) => {
    if (NO_ADDRESS.has(error.code)) return [];
    throw error;
  });
}
