import { Resolver } from 'node:dns/promises';

/** What a name server says when a name has no address of a kind: an answer, not a failure. */
const NO_ADDRESS: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND']);

/**
 * Every IPv4 and IPv6 address that the DNS has for a name; of `localhost`, loopback (RFC 6761 §6.3). Unlike `dns.lookup` it
 * waits outside of Node's four worker threads: whoever owns a slow name server would hold up everybody's work there.
 *
 * @param signal ends the look-up
 * @param servers whom to ask, `address:port`; those of the system unless told
 * @returns nothing for a name that has none
 * @throws the resolver's error when either kind of address could not be learnt
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
