import type { ServerResponse } from 'node:http';
import cors, { type CorsOptions } from 'cors';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { keepHeader, type HeaderLine } from '#platform/http/contract/kept-headers.js';
import type { RoutePolicies } from '#platform/http/routing/route-policies.js';

/**
 * The seconds for which a browser may cache the response to a CORS preflight: two hours, the most
 * that Chromium allows.
 */
const MAX_AGE = 7200;

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * The headers that a script of another origin may send, apart from those that browsers always
 * allow.
 */
const REQUEST_HEADERS = [
  'Authorization',
  'Content-Type',
  'DPoP',
  'If-Match',
  'If-None-Match',
  'x-fapi-interaction-id',
];

/**
 * The headers that a script of another origin may read, apart from those that browsers always show.
 */
const RESPONSE_HEADERS = [
  'DPoP-Nonce',
  'ETag',
  'Link',
  'Location',
  'Retry-After',
  'WWW-Authenticate',
  'x-fapi-interaction-id',
  'x-ratelimit-after',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
];

/**
 * Sets the CORS headers by the audience of the route. Scripts of every origin may read the API,
 * without cookies. Scripts of the given origins may read the routes of the UI, with cookies. No
 * script of another origin may read the routes to which a browser navigates (RFC 9700 §2.6).
 * Preflights are answered by this step, before any rate limit, since a browser sends them by
 * itself.
 *
 * @param origins the origins that SVC_CORS_ORIGINS names
 */
export function corsByAudience(routePolicies: RoutePolicies, origins: readonly string[]): EdgeStep {
  const shared: CorsOptions = {
    methods: METHODS,
    allowedHeaders: REQUEST_HEADERS,
    exposedHeaders: RESPONSE_HEADERS,
    maxAge: MAX_AGE,
    preflightContinue: true,
  };
  const preflightOfApi = cors({ ...shared, origin: '*' });
  const fromOrigins = cors({ ...shared, origin: [...origins], credentials: true });
  const readByAll: readonly HeaderLine[] = [
    ['Access-Control-Allow-Origin', '*'],
    ['Access-Control-Expose-Headers', RESPONSE_HEADERS.join(',')],
  ];
  return (request, response, next) => {
    const { audience } = routePolicies.of(request);
    const { origin } = request.headers;
    const isPreflight =
      request.method === 'OPTIONS' &&
      origin !== undefined &&
      request.headers['access-control-request-method'] !== undefined;
    if (audience === 'api' && !isPreflight) {
      for (const [name, value] of readByAll) keepHeader(response, name, value);
      next();
      return;
    }
    const respond = () => {
      keepCorsHeaders(response);
      if (isPreflight) response.writeHead(204).end();
      else next();
    };
    if (audience === 'api') preflightOfApi(request, response, respond);
    else if (audience === 'ui' && origins.includes(origin ?? '')) {
      fromOrigins(request, response, respond);
    } else {
      // A script of this origin may not read the response. `Vary` keeps a cache from serving this
      // response to an origin that may.
      if (audience === 'ui' && origins.length > 0) response.setHeader('Vary', 'Origin');
      respond();
    }
  };
}

function keepCorsHeaders(response: ServerResponse): void {
  for (const name of response.getHeaderNames()) {
    const value = response.getHeader(name);
    if (name.startsWith('access-control-')) keepHeader(response, name, String(value));
  }
}
