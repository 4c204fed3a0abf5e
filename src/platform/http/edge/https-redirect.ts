import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { tenantOf } from '#platform/http/request/tenant-host.js';
import type { RoutePolicies } from '#platform/http/routing/route-policies.js';

/**
 * Redirects every request of the plain HTTP listener to https, except for routes that also serve
 * plain HTTP. The redirect uses the configured origin and never the `Host` of the request, so that
 * a forged `Host` leads nowhere. A request to the host of a tenant is redirected to the origin of
 * that tenant.
 *
 * @param baseUrl the public origin of the service, https
 */
export function httpsRedirect(routePolicies: RoutePolicies, baseUrl: string): EdgeStep {
  return (request, response, next) => {
    if (routePolicies.of(request).plainHttp) {
      next();
      return;
    }
    const origin = tenantOf(request)?.origin ?? baseUrl;
    const location = origin + pathAndQuery(request.url ?? '');
    response.writeHead(308, { Location: location, 'Content-Length': 0 }).end();
  };
}

/**
 * Returns the path and query of a target. The result begins with a slash, because a text such as
 * `.evil.example` would extend the host name in front of it.
 */
function pathAndQuery(target: string): string {
  if (target.startsWith('/')) return target;
  const url = URL.parse(target);
  return url?.pathname.startsWith('/') ? url.pathname + url.search : '/';
}
