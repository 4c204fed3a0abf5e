import type { IncomingMessage } from 'node:http';
import { Logger } from '@nestjs/common';
import type { Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorVoices } from '#platform/http/errors/error-renderer.service.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { limitedLines } from './limited-lines.js';
import { requestPath, targetAuthority } from '#platform/http/contract/request-path.js';
import { RouteTable } from '#platform/text/route-table.js';
import { toSingleLine } from '#platform/text/single-line.js';

/** Asked by probes and scrapers, which know us by our address. */
const ANY_HOST = new RouteTable([
  ['/health', true],
  ['/health/ready', true],
  ['/metrics', true],
]);

/** In characters: a host name has 253 at most, and a port. */
const LONGEST_HOST = 260;

/** A host and perhaps a port (RFC 3986 §3.2), without user information; or nothing. */
const AUTHORITY = /^(?:\[[\da-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})+)?(?::\d*)?$/i;

/** Whether an authority, in lower case, is one of ours. */
type Ours = (authority: string) => boolean;

/** The base URL's authority, and the one of the mutual-TLS listener beside it. */
export function ownAuthorities({ baseUrl, tls, mtls }: Config['http']): Ours {
  const { host, hostname, protocol } = new URL(baseUrl);
  const authorities = new Set([host]);
  if (host === hostname) authorities.add(`${hostname}:${protocol === 'https:' ? 443 : 80}`);
  if (tls) authorities.add(`${hostname}:${mtls.port}`);
  return (authority) => authorities.has(authority);
}

/** The base URL's host, whatever the port: for the listener whose port is not that of the base URL. */
export function ownHost({ baseUrl }: Config['http']): Ours {
  const { hostname } = new URL(baseUrl);
  return (authority) => authority.replace(/:\d*$/, '') === hostname;
}

/**
 * Refuses what was asked of another host (RFC 9110 §7.4): 421, and a line for `security`, since it may be somebody who
 * rebinds a name to our address. The answer names the configured address. A request whose `Host` is missing, there twice or no host is 400 (RFC 9112 §3.2).
 */
export function hostRule(isOurs: Ours, baseUrl: string, voices: ErrorVoices): EdgeStep {
  const security = new Logger('security');
  const tell = limitedLines((line) => security.warn(line));
  return (request, response, next) => {
    const host = authorityOf(request);
    if (host !== undefined && (isOurs(host) || ANY_HOST.of(requestPath(request)))) next();
    else if (!host) {
      const detail = 'The request must name one host.';
      voices.answer(new DomainError('invalid_request', detail), request, response);
    } else {
      tell(`refused a request for the host ${toSingleLine(host, LONGEST_HOST)}`);
      const detail = `This host name is not the service’s. Use ${baseUrl}.`;
      voices.answer(new DomainError('misdirected_request', detail), request, response);
    }
  };
}

/**
 * The one authority a request is for, in lower case; that of an absolute target wins over `Host` (RFC 9112 §3.2.2).
 *
 * @returns empty where none is named, as HTTP/1.0 may; undefined where that is an error
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
