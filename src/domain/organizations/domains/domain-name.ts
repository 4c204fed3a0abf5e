import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import { organizationDomain } from '../organization-domain.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { RECORD_LABEL } from './domain-record.js';

/**
 * The characters of a domain name before its conversion to ASCII (RFC 3490 §3.1 for the dots). `/`
 * is not among them, because `domainToASCII` would take the rest for a path and drop it.
 */
const CHARACTERS = /^[\p{L}\p{M}\p{N}\-.\u3002\uff0e\uff61]+$/u;

/** One label of a host name: letters, digits and hyphens (RFC 1123 §2.1). */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * The most characters of a domain. A DNS name has at most 253 characters (RFC 1035 §2.3.4). The
 * name of the TXT record that proves the domain is longer than the domain by one label.
 */
const MOST_CHARACTERS = 253 - `${RECORD_LABEL}.`.length;

/**
 * Returns the ASCII form of a domain name in lower case, without a trailing dot; undefined for a
 * text that is no domain name.
 */
export function asciiDomain(text: string): string | undefined {
  const name = text.trim();
  if (!CHARACTERS.test(name)) return undefined;
  const ascii = domainToASCII(name).replace(/\.$/, '');
  const labels = ascii.split('.');
  const isName = ascii.length <= 253 && labels.every((label) => LABEL.test(label));
  // A name whose last label is a number, in decimal or as `0x…`, is an IPv4 address (WHATWG URL
  // §3.5) and no domain.
  const isNumber = /^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '');
  return isName && !isNumber && isIP(ascii) === 0 ? ascii : undefined;
}

/**
 * Reads a domain that an organization wants to prove, from the text of an admin.
 *
 * @throws DomainError invalid_request for a text that is no domain, and for a domain that unrelated
 *   people share, such as that of a mail service
 */
export function parseDomain(text: string): string {
  const domain = asciiDomain(text);
  if (domain === undefined || !domain.includes('.')) {
    throw invalid('This is not a domain name. Give a name such as example.com, without a scheme.');
  }
  if (domain.length > MOST_CHARACTERS) {
    throw invalid(
      `A domain can have ${MOST_CHARACTERS} characters, so that its record has a name.`,
    );
  }
  if (organizationDomain(domain) === null) {
    throw invalid('Strangers share this domain: it is a public suffix or a public mail domain.');
  }
  return domain;
}

function invalid(detail: string): DomainError {
  return new DomainError('invalid_request', detail);
}
