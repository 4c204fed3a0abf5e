/**
 * Returns true if an address leads to this service, whose requests would be events that are sent to
 * it again, without an end. A dot at the end of the name changes nothing (RFC 1034 §3.1).
 */
export function isOwnAddress(url: URL, baseUrl: string): boolean {
  const own = new URL(baseUrl);
  return nameOf(url) === nameOf(own) && url.port === own.port;
}

function nameOf({ hostname }: URL): string {
  return hostname.replace(/\.+$/, '');
}
