import { CATALOGUE, type ErrorCode } from '#platform/errors/catalogue.js';
import type { CompiledRoute } from '#platform/http/routing/route-policies.js';
import type { AuthRule, RoutePolicy } from '#platform/http/routing/route-policy.js';

const SAFE_METHODS = new Set(['GET', 'HEAD']);

/** The errors of the steps that run before the router. Any request can get them, with any path. */
const OF_EVERY_REQUEST = [
  'invalid_request',
  'body_too_large',
  'expectation_failed',
  'misdirected_request',
] as const satisfies readonly ErrorCode[];

/**
 * Returns the errors of a route, sorted by status and code. They are the errors that the route
 * declares, and those that follow from its rules about the caller, the body and the rate.
 */
export function refusalsOf({ method, policy }: Omit<CompiledRoute, 'handler'>): ErrorCode[] {
  const { auth, body, tier } = policy;
  const codes = new Set<ErrorCode>([...OF_EVERY_REQUEST, ...policy.refusals]);
  const add = (...more: readonly ErrorCode[]) => more.forEach((code) => codes.add(code));
  if (tier !== 'unlimited') add('rate_limited');
  if (body.kind !== 'none') add('malformed_body', 'unsupported_media_type', 'timed_out');
  add(...ofCaller(auth));
  if (!SAFE_METHODS.has(method) && auth.origin !== 'any') add('invalid_origin');
  return [...codes].toSorted(byStatus);
}

/**
 * Returns the errors that the look-up of a session can cause. Faults of the database are among
 * them, because the database may be unreachable or too slow.
 */
function ofCaller(auth: AuthRule): readonly ErrorCode[] {
  if (auth.session === 'none') return [];
  const faults = ['timed_out', 'internal', 'unavailable'] as const;
  if (auth.session === 'provisioner') return ['unauthenticated', ...faults];
  if (auth.session === 'program') return ['unauthenticated', 'insufficient_scope', ...faults];
  if (auth.session === 'client') {
    return ['unauthenticated', 'invalid_dpop_proof', 'insufficient_scope', ...faults];
  }
  return [
    'unauthenticated',
    'invalid_dpop_proof',
    'insufficient_scope',
    'stale_page',
    ...(auth.session === 'verified' ? (['hardware_required'] as const) : []),
    ...(auth.touchedWithinSeconds === undefined
      ? []
      : (['insufficient_user_authentication'] as const)),
    ...faults,
  ];
}

function byStatus(one: ErrorCode, other: ErrorCode): number {
  const [a, b] = [CATALOGUE[one].status, CATALOGUE[other].status];
  if (a !== b) return a - b;
  return one < other ? -1 : 1;
}

/** Returns the media types of the errors of a route. */
export function errorTypesOf({ errors }: Pick<RoutePolicy, 'errors'>): readonly string[] {
  return ERROR_TYPES[errors];
}

const ERROR_TYPES = {
  problem: ['application/problem+json'],
  oauth: ['application/json'],
  scim: ['application/scim+json'],
  html: ['text/html'],
  negotiated: ['application/problem+json', 'text/html'],
} as const satisfies Record<RoutePolicy['errors'], readonly string[]>;
