import type { NextFunction, Request, Response } from 'express';

/** Sent with every response. */
const HEADERS = {
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'strict-origin-when-cross-origin',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=(), payment=()',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-DNS-Prefetch-Control': 'off',
};

/** The directives of the Content-Security-Policy that are `'self'`: no inline script, no nonce. */
const OWN_ORIGIN_ONLY = [
  'default-src',
  'script-src',
  'style-src',
  'img-src',
  'font-src',
  'connect-src',
  'base-uri',
];

const UI_CACHE = 'no-cache';
const API_CACHE = 'no-cache, no-store, must-revalidate';

/** The UI routes: the pages and what they call; everything else is an API route. */
const UI_PATH = /^\/(?:$|(?:login|enroll|logout|keys|static)(?:\/|$))/i;

/** Whether a path belongs to the pages rather than to the API. */
export function isUiPath(path: string): boolean {
  return UI_PATH.test(path);
}

/**
 * Writes the security and cache headers at `writeHead`, the last moment there is, so that no later layer can lose
 * or change them.
 *
 * @param formActionOrigins where forms may lead beside our own origin: the upstream identity providers
 */
export function responseHeaders(formActionOrigins: readonly string[]) {
  const self = "'self'";
  const policy = [
    ...OWN_ORIGIN_ONLY.map((directive) => `${directive} ${self}`),
    "frame-ancestors 'none'",
    ['form-action', self, ...new Set(formActionOrigins)].join(' '),
  ];
  const headers = Object.entries({ ...HEADERS, 'Content-Security-Policy': policy.join('; ') });

  return (request: Request, response: Response, next: NextFunction): void => {
    const cache = isUiPath(request.path) ? UI_CACHE : API_CACHE;
    const writeHead = response.writeHead.bind(response);
    response.writeHead = ((...args: Parameters<typeof writeHead>) => {
      for (const [name, value] of headers) response.setHeader(name, value);
      response.setHeader('Cache-Control', cache);
      return writeHead(...args);
    }) as typeof response.writeHead;
    next();
  };
}
