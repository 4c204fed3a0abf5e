import type { ServerResponse } from 'node:http';
import cors, { type CorsOptions } from 'cors';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { requestPath } from '#platform/http/contract/request-path.js';
import { keepHeader, type HeaderLine } from '#platform/http/contract/response-headers.js';
import { corsClassOf } from '#platform/http/contract/route-classes.js';

/** Seconds a browser may remember the answer to a preflight: two hours, the most that Chromium heeds. */
const MAX_AGE = 7200;

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** What a script may send besides the headers that browsers always allow. */
const REQUEST_HEADERS = [
  'Authorization',
  'Content-Type',
  'DPoP',
  'If-Match',
  'If-None-Match',
  'x-fapi-interaction-id',
];

/** What a script may read besides the headers that browsers always show. */
const RESPONSE_HEADERS = [
  'DPoP-Nonce',
  'ETag',
  'Location',
  'Retry-After',
  'WWW-Authenticate',
  'x-fapi-interaction-id',
  'x-ratelimit-after',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
];

/**
 * Cross-origin reading by the class of the route: of the API by anybody, without credentials; of the pages' routes by the
 * origins named, with credentials; of what is reached by navigation alone by nobody (RFC 9700 §2.6). Preflights are
 * answered here, before any limit: a browser sends them of its own accord.
 *
 * @param origins those of SVC_CORS_ORIGINS
 */
export function corsByClass(origins: readonly string[]): EdgeStep {
  const shared: CorsOptions = {
    methods: METHODS,
    allowedHeaders: REQUEST_HEADERS,
    exposedHeaders: RESPONSE_HEADERS,
    maxAge: MAX_AGE,
    preflightContinue: true,
  };
  const preflightOfApi = cors({ ...shared, origin: '*' });
  const fromOrigins = cors({ ...shared, origin: [...origins], credentials: true });
  const readByAnybody: readonly HeaderLine[] = [
    ['Access-Control-Allow-Origin', '*'],
    ['Access-Control-Expose-Headers', RESPONSE_HEADERS.join(',')],
  ];
  return (request, response, next) => {
    const corsClass = corsClassOf(requestPath(request));
    const { origin } = request.headers;
    const isPreflight =
      request.method === 'OPTIONS' &&
      origin !== undefined &&
      request.headers['access-control-request-method'] !== undefined;
    if (corsClass === 'api' && !isPreflight) {
      for (const [name, value] of readByAnybody) keepHeader(response, name, value);
      next();
      return;
    }
    const answer = () => {
      keepCorsHeaders(response);
      if (isPreflight) response.writeHead(204).end();
      else next();
    };
    if (corsClass === 'api') preflightOfApi(request, response, answer);
    else if (corsClass === 'ui' && origins.includes(origin ?? '')) {
      fromOrigins(request, response, answer);
    } else {
      // Not theirs to read; but a cache must not hand it to those whose it is.
      if (corsClass === 'ui' && origins.length > 0) response.setHeader('Vary', 'Origin');
      answer();
    }
  };
}

function keepCorsHeaders(response: ServerResponse): void {
  for (const name of response.getHeaderNames()) {
    const value = response.getHeader(name);
    if (name.startsWith('access-control-')) keepHeader(response, name, String(value));
  }
}
