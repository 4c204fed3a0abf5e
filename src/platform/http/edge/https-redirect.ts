import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { RouteTable } from '#platform/text/route-table.js';
import { requestPath } from '#platform/http/contract/request-path.js';

/** What is answered over plain HTTP too: probes have no use for a redirect. */
const SERVED_PLAINLY = new RouteTable([
  ['/health', true],
  ['/health/ready', true],
]);

/**
 * The last step of the plain listener beside TLS: everything but the probes is to be asked again over TLS. Where that
 * is comes from configuration, and never from the request.
 *
 * @param baseUrl the public origin, https
 */
export function httpsRedirect(baseUrl: string): EdgeStep {
  return (request, response, next) => {
    if (SERVED_PLAINLY.of(requestPath(request))) {
      next();
      return;
    }
    const location = baseUrl + pathAndQuery(request.url ?? '');
    response.writeHead(308, { Location: location, 'Content-Length': 0 }).end();
  };
}

/** Begins with a slash, so that whatever follows cannot become part of the origin in front of it. */
function pathAndQuery(target: string): string {
  if (target.startsWith('/')) return target;
  const url = URL.parse(target);
  return url?.pathname.startsWith('/') ? url.pathname + url.search : '/';
}
