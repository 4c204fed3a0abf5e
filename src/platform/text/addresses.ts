import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

/** A label of letters, digits and hyphens (RFC 1123 §2.1). */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Converts a domain of two labels or more, such as `Müller.example`, to ASCII (Punycode) and lower
 * case. Returns undefined for any other text.
 */
export function asDomain(item: string): string | undefined {
  if (!/^[\p{L}\p{M}\p{N}.-]+$/u.test(item)) return undefined;
  const domain = domainToASCII(item).replace(/\.$/, '');
  const isDomain = domain.length <= 253 && domain.includes('.');
  return isDomain && domain.split('.').every((label) => LABEL.test(label)) ? domain : undefined;
}

/**
 * Converts a list of domains. An item such as `*.corp.example` stands for every subdomain of
 * `corp.example`.
 *
 * @returns undefined if an item is malformed
 */
export function asDomainPatterns(items: readonly string[]): readonly string[] | undefined {
  const patterns = items.map((item) => {
    const [wildcard, name] = item.startsWith('*.') ? ['*.', item.slice(2)] : ['', item];
    const domain = asDomain(name);
    return domain === undefined ? undefined : wildcard + domain;
  });
  const isSound = patterns.length > 0 && !patterns.includes(undefined);
  return isSound ? patterns.filter((pattern) => pattern !== undefined) : undefined;
}

/**
 * Parses an address and a port, such as `[::]:3000`. Without an address, the result means every
 * address of the machine. Returns undefined for a malformed text.
 */
export function asListenAddress(value: string) {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(value);
  const host = match?.[1] ?? match?.[2] ?? '';
  const port = Number(match?.[3]);
  if (!match || port > 65_535) return undefined;
  if (host === '') return { host: '::', port };
  return isIP(host) !== 0 || host === 'localhost' ? { host, port } : undefined;
}

/** Returns true if a text is an IP address, or a CIDR range such as `10.0.0.0/8`. */
export function isNetwork(item: string): boolean {
  const [address = '', bits = '0', ...rest] = item.split('/');
  const width = isIP(address) === 6 ? 128 : 32;
  const isRange = /^\d{1,3}$/.test(bits) && Number(bits) <= width;
  return isIP(address) !== 0 && rest.length === 0 && isRange;
}
