import type { IncomingMessage } from 'node:http';
import { Logger } from '@nestjs/common';
import type { Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorRenderer } from '#platform/http/errors/error-renderer.service.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { limitedLines } from './limited-lines.js';
import { targetAuthority } from '#platform/http/contract/request-path.js';
import type { RoutePolicies } from '#platform/http/routing/route-policies.js';
import { toSingleLine } from '#platform/text/single-line.js';

/** In characters: a host name has at most 253, and then a port may follow. */
const LONGEST_HOST = 260;

/** Matches a host with an optional port (RFC 3986 §3.2), without user information; or nothing. */
const AUTHORITY = /^(?:\[[\da-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})+)?(?::\d*)?$/i;

/** Returns true for an authority of this service, in lower case. */
type OwnAuthority = (authority: string) => boolean;

/** Accepts the authority of the base URL, and that of the mutual-TLS listener beside it. */
export function ownAuthorities({ baseUrl, tls, mtls }: Config['http']): OwnAuthority {
  const { host, hostname, protocol } = new URL(baseUrl);
  const authorities = new Set([host]);
  if (host === hostname) authorities.add(`${hostname}:${protocol === 'https:' ? 443 : 80}`);
  if (tls) authorities.add(`${hostname}:${mtls.port}`);
  return (authority) => authorities.has(authority);
}

/** Accepts the host of the base URL with any port, for a listener whose port is not that of the base URL. */
export function ownHost({ baseUrl }: Config['http']): OwnAuthority {
  const { hostname } = new URL(baseUrl);
  return (authority) => authority.replace(/:\d*$/, '') === hostname;
}

/** The parts of the application that the rule about hosts needs. */
export interface HostRuleOptions {
  readonly baseUrl: string;
  readonly routePolicies: RoutePolicies;
  readonly errorRenderer: ErrorRenderer;
}

/**
 * Refuses a request for another host with 421 (RFC 9110 §7.4) and logs it for `security`, since an attacker may have bound a
 * name to our address. The response names the configured address. A request without a `Host`, with two or with a malformed
 * one gets 400 (RFC 9112 §3.2).
 */
export function hostRule(isOwn: OwnAuthority, options: HostRuleOptions): EdgeStep {
  const { baseUrl, routePolicies, errorRenderer } = options;
  const security = new Logger('security');
  const log = limitedLines((line) => security.warn(line));
  return (request, response, next) => {
    const host = authorityOf(request);
    const isServed =
      host !== undefined && (isOwn(host) || routePolicies.of(request).hosts === 'any');
    if (isServed) next();
    else if (!host) {
      const detail = 'The request must name one host.';
      errorRenderer.render(new DomainError('invalid_request', detail), request, response);
    } else {
      log(`refused a request for the host ${toSingleLine(host, LONGEST_HOST)}`);
      const detail = `This host name is not the service’s. Use ${baseUrl}.`;
      errorRenderer.render(new DomainError('misdirected_request', detail), request, response);
    }
  };
}

/**
 * Reads the one authority that a request names, in lower case. That of an absolute target wins over `Host` (RFC 9112 §3.2.2).
 *
 * @returns an empty string where HTTP/1.0 names none; undefined where the authority is missing, double or malformed
 */
function authorityOf({ url = '', rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  const hosts = rawHeaders.filter((_, i) => i % 2 === 1 && isHost(rawHeaders[i - 1]));
  const isOne = hosts.length === 1 || (hosts.length === 0 && httpVersion === '1.0');
  const target = targetAuthority(url);
  const named = [...hosts, target ?? ''];
  if (!isOne || named.some((host) => !AUTHORITY.test(host))) return undefined;
  return (target ?? hosts[0] ?? '').toLowerCase();
}

function isHost(name = ''): boolean {
  return name.length === 4 && name.toLowerCase() === 'host';
}
