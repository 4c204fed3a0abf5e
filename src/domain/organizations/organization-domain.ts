import freeMailDomains from 'email-providers/all.json' with { type: 'json' };
import { parse } from 'tldts';

/** Domains of public mail services that the package with the list of such domains lacks. */
const UNLISTED = [
  'duck.com',
  'fastmail.com',
  'mozmail.com',
  'passmail.net',
  'posteo.de',
  'simplelogin.com',
  'tuta.com',
  'tuta.io',
  'tutanota.com',
];
const PUBLIC_MAIL = new Set([...freeMailDomains, ...UNLISTED]);
// The package lists this domain by mistake. RFC 2606 §3 reserves it for documentation, so no
// mailbox exists there.
PUBLIC_MAIL.delete('example.com');

/**
 * Returns the domain if it can belong to an organization. Returns null for a domain that unrelated
 * people share, because the first of them who signs in would become the admin of all others. Shared
 * domains are public suffixes (also private ones such as `github.io`), and public mail domains with
 * their subdomains. A single label and an IP address also give null.
 *
 * @param domain ASCII, lower case
 */
export function organizationDomain(domain: string): string | null {
  const { hostname, domain: registrable } = parse(domain, { allowPrivateDomains: true });
  if (registrable === null || hostname !== domain) return null;
  return PUBLIC_MAIL.has(domain) || PUBLIC_MAIL.has(registrable) ? null : domain;
}
