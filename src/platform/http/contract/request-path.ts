import type { IncomingMessage } from 'node:http';
import type { EdgeStep } from './edge-step.js';

/** What the absolute form of a target has before its path: proxies send it (RFC 9112 §3.2.2). */
const ORIGIN = /^https?:\/\/([^/?]*)/i;

/** The authority that an absolute target names; undefined for every other form. */
export function targetAuthority(url: string): string | undefined {
  return ORIGIN.exec(url)?.[1];
}

/**
 * The path of a request target, without its query, as it was written: `/a/../b` is no `/b`, and the router would not take
 * it for one; the base address of SCIM alone may end with two slashes. `*` for a target that has none.
 */
export function requestPath({ url = '' }: Pick<IncomingMessage, 'url'>): string {
  const target = originForm(url);
  const end = target.indexOf('?');
  return end === -1 ? target : target.slice(0, end);
}

/**
 * Takes the authority off a target once it was judged, so that whoever comes next, the router above all, reads the same
 * path as those before.
 */
export const withoutAuthority: EdgeStep = (request, _response, next) => {
  request.url = originForm(request.url ?? '');
  next();
};

/** A target as a path and its query; `*` where it is neither that nor an address of http. */
function originForm(url: string): string {
  if (url.startsWith('/')) return withoutSecondSlash(url);
  const [origin] = ORIGIN.exec(url) ?? [];
  if (origin === undefined || !URL.canParse(url)) return '*';
  const rest = url.slice(origin.length);
  return withoutSecondSlash(rest.startsWith('/') ? rest : `/${rest}`);
}

/** Where identity providers are told a base address with a slash at its end, and put their own behind it. */
const SCIM_BASE = /^(\/scim\/v2\/)\/(?!\/)/i;

/**
 * `/scim/v2//Users` as `/scim/v2/Users`: for the router, and for every rule that goes by the path, alike. No other slash is
 * taken away, so a path with two of them is none of ours.
 */
function withoutSecondSlash(target: string): string {
  return target.replace(SCIM_BASE, '$1');
}
