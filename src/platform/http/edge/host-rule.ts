import type { IncomingMessage, ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import type { Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorRenderer } from '#platform/http/errors/error-renderer.service.js';
import { asDomainError } from '#platform/http/errors/as-domain-error.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { limitedLines } from './limited-lines.js';
import { targetAuthority } from '#platform/http/contract/request-path.js';
import {
  noteTenant,
  type HostedTenant,
  type TenantHosts,
} from '#platform/http/request/tenant-host.js';
import type { RoutePolicies } from '#platform/http/routing/route-policies.js';
import { toSingleLine } from '#platform/text/single-line.js';

/** The largest number of characters of a host with its port: a host name has at most 253. */
const LONGEST_HOST = 260;

/**
 * Matches an authority: a host with an optional port (RFC 3986 §3.2), without user information. It
 * also matches the empty string.
 */
const AUTHORITY = /^(?:\[[\da-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})+)?(?::\d*)?$/i;

/**
 * Returns true for an authority (host and port) at which this service is reached. The authority is
 * in lower case.
 */
type OwnAuthority = (authority: string) => boolean;

/**
 * Makes the check that accepts the authority of the base URL. If the service terminates TLS, it
 * also accepts the same host with the port of the mutual-TLS listener.
 */
export function ownAuthorities({ baseUrl, tls, mtls }: Config['http']): OwnAuthority {
  const { host, hostname, protocol } = new URL(baseUrl);
  const authorities = new Set([host]);
  if (host === hostname) authorities.add(`${hostname}:${protocol === 'https:' ? 443 : 80}`);
  if (tls) authorities.add(`${hostname}:${mtls.port}`);
  return (authority) => authorities.has(authority);
}

/**
 * Makes the check that accepts the host of the base URL with any port. It is for the plain listener
 * beside TLS, because the base URL does not have the port of that listener.
 */
export function ownHost({ baseUrl }: Config['http']): OwnAuthority {
  const { hostname } = new URL(baseUrl);
  return (authority) => authority.replace(/:\d*$/, '') === hostname;
}

/** The dependencies of {@link hostRule}, and the base URL that its refusals name. */
export interface HostRuleOptions {
  readonly baseUrl: string;
  readonly routePolicies: RoutePolicies;
  readonly errorRenderer: ErrorRenderer;
  readonly tenantHosts: TenantHosts;
}

/**
 * Refuses a request for another host with 421 (RFC 9110 §7.4), and logs it under `security`. An
 * attacker may have made a host name resolve to our IP address (DNS rebinding). The response names
 * the base URL. A request gets 400 if its `Host` is missing, malformed or sent twice (RFC 9112
 * §3.2).
 *
 * A tenant is an organization with a host of its own. At such a host, only the routes with
 * `tenantHosts` exist.
 */
export function hostRule(isOwn: OwnAuthority, options: HostRuleOptions): EdgeStep {
  const { routePolicies, tenantHosts } = options;
  const refuseHost = hostRefusal(options);
  const decideOnTenant = tenantRule(options);
  return (request, response, next) => {
    const host = authorityOf(request);
    const policy = routePolicies.of(request);
    const label = tenantLabel(host, isOwn, tenantHosts);
    const admitOrRefuse = () => {
      if (host !== undefined && (isOwn(host) || policy.hosts === 'any')) next();
      else refuseHost(host, request, response);
    };
    if (label === undefined || (policy.hosts === 'any' && policy.tenantHosts)) admitOrRefuse();
    else void decideOnTenant(label, { request, response, next, otherwise: admitOrRefuse });
  };
}

/** A request whose host may belong to a tenant, which is an organization with a host of its own. */
interface TenantRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly next: () => void;
  /** Decides about the request if no tenant has that host. */
  readonly otherwise: () => void;
}

/**
 * Makes the rule for a host that has one label in front of our own host. The database says which
 * tenant, if any, has that label.
 */
function tenantRule({ routePolicies, errorRenderer, tenantHosts }: HostRuleOptions) {
  return async (label: string, visit: TenantRequest): Promise<void> => {
    const { request, response } = visit;
    let tenant: HostedTenant | undefined;
    try {
      tenant = await tenantHosts.find(label);
    } catch (error) {
      errorRenderer.render(asDomainError(error), request, response);
      return;
    }
    if (tenant === undefined) visit.otherwise();
    else if (routePolicies.of(request).tenantHosts) {
      noteTenant(request, tenant);
      visit.next();
    } else {
      routePolicies.ofNothing(request);
      const error = new DomainError('not_found', 'There is nothing here.');
      errorRenderer.render(error, request, response);
    }
  };
}

/**
 * Makes the function that refuses a request whose host is missing, malformed or not a host of this
 * service.
 */
function hostRefusal({ baseUrl, errorRenderer }: HostRuleOptions) {
  const security = new Logger('security');
  const log = limitedLines((line) => security.warn(line));
  return (host: string | undefined, request: IncomingMessage, response: ServerResponse): void => {
    if (!host) {
      const detail = 'The request must name one host.';
      errorRenderer.render(new DomainError('invalid_request', detail), request, response);
      return;
    }
    log(`refused a request for the host ${toSingleLine(host, LONGEST_HOST)}`);
    const detail = `This host name is not the service’s. Use ${baseUrl}.`;
    errorRenderer.render(new DomainError('misdirected_request', detail), request, response);
  };
}

/**
 * Returns the label in front of our own authority, such as `acme` of `acme.svc.example`; undefined
 * for an authority that no tenant can have.
 */
function tenantLabel(
  host: string | undefined,
  isOwn: OwnAuthority,
  tenantHosts: TenantHosts,
): string | undefined {
  const dot = host?.indexOf('.') ?? -1;
  if (host === undefined || dot === -1 || isOwn(host) || !isOwn(host.slice(dot + 1))) {
    return undefined;
  }
  const label = host.slice(0, dot);
  return tenantHosts.isLabel(label) ? label : undefined;
}

/**
 * Returns the authority (host and port) that a request names, in lower case. If the target of the
 * request is a whole URL, the authority in it wins over the header `Host` (RFC 9112 §3.2.2).
 *
 * @returns an empty string if a request of HTTP/1.0 names none; undefined if the authority is
 *   missing, occurs twice or is malformed
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
