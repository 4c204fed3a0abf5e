import type { IncomingMessage } from 'node:http';

/**
 * Matches the scheme and authority (host and port) of an absolute request target, which proxies
 * send (RFC 9112 §3.2.2).
 */
const ORIGIN = /^https?:\/\/([^/?]*)/i;

/**
 * Returns the authority (host and port) of an absolute request target; undefined for a target in
 * any other form.
 */
export function targetAuthority(url: string): string | undefined {
  return ORIGIN.exec(url)?.[1];
}

/**
 * Returns the path of a request target without its query, as the client wrote it: `/a/../b` is not
 * resolved to `/b`, because the router does not do that either. A target that is neither a path nor
 * an http URL becomes `*`.
 *
 * @param bases base paths, such as `/scim/v2/`, behind which a second slash is dropped, see {@link
 *   originForm}
 */
export function requestPath(
  { url = '' }: Pick<IncomingMessage, 'url'>,
  bases: readonly string[] = [],
): string {
  const target = originForm(url, bases);
  const end = target.indexOf('?');
  return end === -1 ? target : target.slice(0, end);
}

/**
 * Reduces a target to a path and its query. A target that is neither a path nor an http URL becomes
 * `*`.
 *
 * @param bases base paths in lower case. A second slash behind one of them is dropped, because some
 *   clients append `/path` to a base URL that already ends with a slash. No other slash is dropped.
 */
export function originForm(url: string, bases: readonly string[] = []): string {
  if (url.startsWith('/')) return withoutSecondSlash(url, bases);
  const [origin] = ORIGIN.exec(url) ?? [];
  if (origin === undefined || !URL.canParse(url)) return '*';
  const rest = url.slice(origin.length);
  return withoutSecondSlash(rest.startsWith('/') ? rest : `/${rest}`, bases);
}

function withoutSecondSlash(target: string, bases: readonly string[]): string {
  for (const base of bases) {
    const { length } = base;
    if (target[length] === '/' && target[length + 1] !== '/' && startsWith(target, base)) {
      return target.slice(0, length) + target.slice(length + 1);
    }
  }
  return target;
}

function startsWith(target: string, base: string): boolean {
  return target.slice(0, base.length).toLowerCase() === base;
}
