/**
 * Returns the form in which resource indicators (RFC 8707 §2) are compared. It is the spelling of
 * WHATWG URL, without a dot at the end of the host. The database function `resource_key` has the
 * same rule for registered resources.
 */
export function resourceKey(resource: string): string {
  const url = URL.parse(resource);
  if (url === null || !['https:', 'http:'].includes(url.protocol)) return resource;
  const [scheme, host] = [url.protocol, url.hostname.replace(/\.+$/, '')];
  const port = url.port === '' ? '' : `:${url.port}`;
  return `${scheme}//${host}${port}${url.pathname}${url.search}${url.hash}`;
}

/**
 * Returns a host and its parent domains, the longest first: `a.b.c`, `b.c` and `c` for `a.b.c`. If
 * an organization has proven one of these domains, the host may belong to it.
 */
export function hostAndParents(host: string): string[] {
  const labels = host.split('.');
  return labels.map((_, n) => labels.slice(n).join('.'));
}
