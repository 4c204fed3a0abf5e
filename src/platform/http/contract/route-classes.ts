import { RouteTable } from '#platform/text/route-table.js';

/**
 * What a route is to browsers: `ui` a page of ours or what it calls, `navigation` reached from elsewhere by the address bar
 * alone.
 */
type SpecialClass = 'ui' | 'navigation';

/** The routes that are no API: everything else is. */
const SPECIAL = new RouteTable<SpecialClass>([
  ['/', 'ui'],
  ['/login*', 'ui'],
  ['/enroll*', 'ui'],
  ['/keys', 'ui'],
  ['/sessions', 'ui'],
  ['/logout', 'ui'],
  ['/static/*', 'ui'],
  ['/device*', 'ui'],
  ['/interaction/*', 'ui'],
  ['/admin/*', 'ui'],

  ['/oauth/authorize*', 'navigation'],
  ['/oauth/logout*', 'navigation'],
]);

/** Who may read a route's answers: any origin, those of SVC_CORS_ORIGINS with credentials, or none but our own. */
export type CorsClass = 'api' | 'ui' | 'none';

/** @param path of a request, or a route's template */
export function corsClassOf(path: string): CorsClass {
  const special = SPECIAL.of(path);
  return special === 'navigation' ? 'none' : (special ?? 'api');
}

/** What caches are told: to ask again before each use of a page, and to keep nothing of the API. */
export const CACHE_CONTROL = {
  ui: 'no-cache',
  api: 'no-cache, no-store, must-revalidate',
} as const;

/** @param path of a request, or a route's template */
export function cacheClassOf(path: string): keyof typeof CACHE_CONTROL {
  return SPECIAL.of(path) === 'ui' ? 'ui' : 'api';
}
