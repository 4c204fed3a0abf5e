/**
 * Returns true if a URL leads to this service. No event may be sent to such a URL: the request
 * would be recorded as another event, in an endless loop. A dot at the end of the host name is
 * ignored, because it changes nothing (RFC 1034 §3.1).
 */
export function isOwnAddress(url: URL, baseUrl: string): boolean {
  const own = new URL(baseUrl);
  return nameOf(url) === nameOf(own) && url.port === own.port;
}

function nameOf({ hostname }: URL): string {
  return hostname.replace(/\.+$/, '');
}
