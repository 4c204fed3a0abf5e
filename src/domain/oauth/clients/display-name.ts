import { toSingleLine } from '#platform/text/single-line.js';

/** The most characters of a client's name on a page. Registration has the same limit. */
const LONGEST_NAME = 64;

/**
 * Returns the name of a client in a form that is safe on a page: one line, without characters that
 * change the direction of text.
 */
export function displayName(client: {
  readonly clientId: string;
  readonly clientName?: string | undefined;
}): string {
  return toSingleLine(client.clientName ?? '', LONGEST_NAME) ?? client.clientId;
}

/**
 * Returns the host of a redirect URI for a page, or only the scheme if it is not http or https. The
 * host of another scheme proves nothing: `com.example.app://bank.example` does not lead to the bank
 * (RFC 8252 §7.1).
 */
export function displayHost(uri: string): string {
  const url = URL.parse(uri);
  if (!url) return '';
  return ['https:', 'http:'].includes(url.protocol) ? url.host : url.protocol;
}
