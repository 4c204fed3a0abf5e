import freeMailDomains from 'email-providers/all.json' with { type: 'json' };
import { parse } from 'tldts';

/** Public mail domains that the list misses. */
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
// Listed by mistake: RFC 2606 §3 reserves it for documentation, so nobody's mail is there.
PUBLIC_MAIL.delete('example.com');

/**
 * The domain under which people form an organization: the given one, or null where strangers share it, since the
 * first of them would become the others' admin: a public suffix (private ones such as `github.io` included), a
 * public mail domain or anything below one, a single label, an IP address.
 *
 * @param domain ASCII, lower case
 */
export function organizationDomain(domain: string): string | null {
  const { hostname, domain: registrable } = parse(domain, { allowPrivateDomains: true });
  if (registrable === null || hostname !== domain) return null;
  return PUBLIC_MAIL.has(domain) || PUBLIC_MAIL.has(registrable) ? null : domain;
}
