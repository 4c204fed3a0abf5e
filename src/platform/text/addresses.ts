import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import { z } from 'zod';
import { asciiLowerCase } from './single-line.js';

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

/** The messages for a malformed list of domains, and of e-mail addresses. */
export const EMAIL_DOMAINS = 'must be domains such as corp.example, comma-separated';
export const EMAIL_ADDRESSES = 'must be e-mail addresses such as ada@corp.example, comma-separated';

const EMAIL = z.string().regex(z.regexes.html5Email);

/**
 * Converts domains of e-mail addresses to ASCII (Punycode) and lower case, as the database stores
 * them. A domain may have a single label, such as `localhost`.
 *
 * @returns undefined for an empty list, and if an item is malformed
 */
export function asEmailDomains(items: readonly string[]): ReadonlySet<string> | undefined {
  return setOf(items.map(asciiLowerCase), (item) => (LABEL.test(item) ? item : asDomain(item)));
}

/**
 * Converts e-mail addresses to ASCII lower case, as the database stores them.
 * @returns undefined for an empty list, and if an item is malformed
 */
export function asEmailAddresses(items: readonly string[]): ReadonlySet<string> | undefined {
  return setOf(items.map(asciiLowerCase), (item) => EMAIL.safeParse(item).data);
}

function setOf(items: readonly string[], read: (item: string) => string | undefined) {
  const found = items.map(read).filter((item) => item !== undefined);
  return found.length > 0 && found.length === items.length ? new Set(found) : undefined;
}

/**
 * Parses an IP address or `localhost` and a port, such as `[::]:3000`. Without an address, the
 * result means every IP address of the machine. Returns undefined for a malformed text.
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
