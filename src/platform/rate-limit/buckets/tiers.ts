import { RouteTable } from '#platform/text/route-table.js';
import { LAPSE_INTERVALS } from '#platform/gcra/bookings.js';
import { longestDebt, type Rate } from '#platform/gcra/gcra.js';

/** The tiers, fixed by the requirements. A client has one bucket in each. */
export const TIERS = {
  authentication: { burst: 8, interval: 2000 },
  issuance: { burst: 15, interval: 2000 },
  general: { burst: 20, interval: 1000 },
} as const satisfies Record<string, Rate>;

/** The name of a tier. */
export type TierName = keyof typeof TIERS;

/** Milliseconds after which the bucket of any tier is as good as new, and has no bookings: none is for later than its debt. */
export const LONGEST_STATE = Math.max(
  ...Object.values(TIERS).map((rate) => longestDebt(rate) + LAPSE_INTERVALS * rate.interval),
);

/** Which tier holds where. A row that begins with a method holds for that method alone. */
const ROUTES = new RouteTable<TierName | 'unlimited'>([
  ['/oauth/token', 'authentication'],
  ['/oauth/par', 'authentication'],
  ['/oauth/fido2/challenge', 'authentication'],
  ['/oauth/device', 'authentication'],
  ['/oauth/register*', 'authentication'],
  ['POST /device', 'authentication'],
  ['/v1/keys/register/*', 'authentication'],
  ['/login/webauthn/*', 'authentication'],
  ['/enroll/webauthn/*', 'authentication'],

  ['/v1/credentials/ssh', 'issuance'],
  ['/v1/credentials/aws/token', 'issuance'],
  ['/v1/credentials/github/token', 'issuance'],

  ['/oauth/authorize*', 'general'],
  ['/oauth/logout*', 'general'],
  ['/oauth/introspect', 'general'],
  ['/oauth/revoke', 'general'],
  ['/api/v1/org/*', 'general'],
  ['/api/v1/applications*', 'general'],
  ['/api/webhooks/github', 'general'],
  ['/scim/v2/*', 'general'],
  ['/v1/keys*', 'general'],
  ['/v1/sessions*', 'general'],
  ['/v1/credentials/ssh/ca', 'general'],
  ['/v1/credentials/ssh/krl*', 'general'],
  ['/admin/*', 'general'],
  ['/device*', 'general'],
  ['/interaction/*', 'general'],
  ['/login', 'general'],
  ['/enroll', 'general'],
  ['/keys', 'general'],
  ['/sessions', 'general'],
  ['/logout', 'general'],
  ['/certification/*', 'general'],

  ['/', 'unlimited'],
  ['/static/*', 'unlimited'],
  ['/health', 'unlimited'],
  ['/health/ready', 'unlimited'],
  ['/metrics', 'unlimited'],
  ['/oauth/jwks', 'unlimited'],
  ['/oauth/userinfo', 'unlimited'],
  ['/oauth/callback', 'unlimited'],
  ['/saml/acs', 'unlimited'],
  ['/saml/metadata', 'unlimited'],
  ['/openapi.json', 'unlimited'],
  ['/.well-known/*', 'unlimited'],
]);

/**
 * The tier of a route's template or a request's path.
 *
 * @returns undefined where no row speaks of it
 */
export function tierOf(method: string, path: string): TierName | 'unlimited' | undefined {
  return ROUTES.of(`${method} ${path}`) ?? ROUTES.of(path);
}
