import { toSingleLine } from '#platform/text/single-line.js';

/** The longest name in characters; registration has the same limit. */
const LONGEST_NAME = 64;

/**
 * Returns a client's name for a page: one line, without characters that change the direction of
 * text.
 */
export function displayName(client: {
  readonly clientId: string;
  readonly clientName?: string | undefined;
}): string {
  return toSingleLine(client.clientName ?? '', LONGEST_NAME) ?? client.clientId;
}

/**
 * Returns the host of an address for a page, or the scheme if it is not http or https. The host of
 * another scheme proves nothing: `com.example.app://bank.example` does not lead to the bank (RFC
 * 8252 §7.1).
 */
export function displayHost(uri: string): string {
  const url = URL.parse(uri);
  if (!url) return '';
  return ['https:', 'http:'].includes(url.protocol) ? url.host : url.protocol;
}
