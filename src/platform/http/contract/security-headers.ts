/**
 * The directives of the Content-Security-Policy whose value is `'self'`. No page has an inline
 * script, so no nonce is needed.
 */
const OWN_ORIGIN_ONLY = [
  'default-src',
  'script-src',
  'style-src',
  'img-src',
  'font-src',
  'connect-src',
  'base-uri',
];

/**
 * Makes the security headers of every response.
 *
 * @param formActionOrigins the origins of the upstream identity providers, to which forms may lead
 *   in addition to our own origin
 */
export function securityHeaders(formActionOrigins: readonly string[]) {
  const self = "'self'";
  const policy = [
    ...OWN_ORIGIN_ONLY.map((directive) => `${directive} ${self}`),
    "frame-ancestors 'none'",
    ['form-action', self, ...new Set(formActionOrigins)].join(' '),
  ];
  return [
    ['X-Frame-Options', 'DENY'],
    ['X-Content-Type-Options', 'nosniff'],
    ['Referrer-Policy', 'strict-origin-when-cross-origin'],
    ['Permissions-Policy', 'camera=(), microphone=(), geolocation=(), payment=()'],
    ['Cross-Origin-Opener-Policy', 'same-origin'],
    ['Cross-Origin-Resource-Policy', 'same-origin'],
    ['X-DNS-Prefetch-Control', 'off'],
    ['Content-Security-Policy', policy.join('; ')],
  ] as const;
}

/**
 * The header by which browsers use only https for two years. Browsers obey the header only over
 * TLS, and RFC 6797 §7.2 forbids it over plain HTTP.
 */
export const STRICT_TRANSPORT_SECURITY = [
  'Strict-Transport-Security',
  'max-age=63072000; includeSubDomains; preload',
] as const;
