import { BlockList, isIP, SocketAddress } from 'node:net';

/**
 * The IPv4 networks whose addresses are not on the public internet (IANA special-purpose registry,
 * RFC 6890).
 */
const SPECIAL_IPV4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8], // this network (RFC 1122 §3.2.1.3)
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // carrier-grade NAT
  ['127.0.0.0', 8], // loopback
  ['168.63.129.16', 32], // the metadata service of Azure
  ['169.254.0.0', 16], // link-local, with the metadata services of clouds
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments
  ['192.0.2.0', 24], // documentation
  ['192.31.196.0', 24], // AS112 (DNS servers for private networks)
  ['192.52.193.0', 24], // AMT (tunnels for multicast)
  ['192.88.99.0', 24], // relays of 6to4 (IPv6 over IPv4)
  ['192.168.0.0', 16], // private
  ['192.175.48.0', 24], // AS112 (DNS servers for private networks)
  ['198.18.0.0', 15], // benchmarking
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, broadcast
];

/**
 * The networks in 2000::/3 whose addresses are not on the public internet. No address outside of
 * 2000::/3 counts as public: loopback, unique-local, link-local, multicast, and the forms with an
 * IPv4 address inside (mapped, compatible, NAT64).
 */
const SPECIAL_IPV6: readonly (readonly [string, number])[] = [
  ['2001::', 23], // protocol assignments, Teredo, benchmarking, ORCHID
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4 (IPv6 over IPv4)
  ['2620:4f:8000::', 48], // AS112 (DNS servers for private networks)
  ['3fff::', 20], // documentation
];

/** The loopback addresses: 127.0.0.0/8 and ::1. */
const LOOPBACK = blockList([['127.0.0.0', 8]], [['::1', 128]]);

const NOT_GLOBAL = blockList(SPECIAL_IPV4, SPECIAL_IPV6);
const GLOBAL_UNICAST = blockList([], [['2000::', 3]]);

/**
 * Returns true if an IP address is on the public internet: not of this machine, a private network
 * or a cloud's metadata service.
 *
 * @param address IPv4 or IPv6; an IPv6 address with a zone, such as `%eth0`, is not public
 */
export function isGlobalAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !NOT_GLOBAL.check(address, 'ipv4');
  if (family === 0 || address.includes('%')) return false;
  return (
    GLOBAL_UNICAST.check(address, 'ipv6') &&
    !NOT_GLOBAL.check(address, 'ipv6') &&
    !isIsatap(address)
  );
}

/**
 * Returns true if an IP address is in 127.0.0.0/8 or is ::1. It returns false for an IPv4 address
 * that is written as IPv6, such as ::ffff:127.0.0.1.
 */
export function isLoopbackAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return LOOPBACK.check(address, 'ipv4');
  return address === '::1';
}

/**
 * Returns true if an IPv6 address contains an IPv4 address by ISATAP, a tunnel that could lead into
 * an internal network. Its last half is `0:5efe` or `200:5efe`, then the IPv4 address (RFC 5214
 * §6.1).
 */
function isIsatap(ipv6: string): boolean {
  const canonical = new SocketAddress({ address: ipv6, family: 'ipv6' }).address;
  const [head = [], tail = []] = canonical
    .split('::')
    .map((groups) => groups.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => '0');
  const [, , , , flags = '', type] = [...head, ...zeros, ...tail];
  return type === '5efe' && ['0', '200'].includes(flags);
}

function blockList(
  ipv4: readonly (readonly [string, number])[],
  ipv6: readonly (readonly [string, number])[],
): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of ipv4) list.addSubnet(network, prefix, 'ipv4');
  for (const [network, prefix] of ipv6) list.addSubnet(network, prefix, 'ipv6');
  return list;
}
