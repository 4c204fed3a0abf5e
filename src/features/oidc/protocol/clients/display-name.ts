import { toSingleLine } from '#platform/text/single-line.js';

/** In characters, as many as a name may have where it is registered. */
const LONGEST_NAME = 64;

/** The name of a client as pages show it: one line without any mark that turns the direction of text. */
export function displayName(client: {
  readonly clientId: string;
  readonly clientName?: string | undefined;
}): string {
  return toSingleLine(client.clientName ?? '', LONGEST_NAME) ?? client.clientId;
}

/**
 * The host of an address that users are sent to, or its scheme where that is none of the web: what stands as a host behind another
 * scheme proves nothing (RFC 8252 §7.1), and `com.example.app://bank.example` leads to no bank.
 */
export function displayHost(uri: string): string {
  const url = URL.parse(uri);
  if (!url) return '';
  return ['https:', 'http:'].includes(url.protocol) ? url.host : url.protocol;
}
