import type { Application } from 'express';
import { RouteTable } from '#platform/text/route-table.js';

/** What Express keeps of a route: how it matches a path, and which methods it has. */
interface Layer {
  readonly route?: {
    readonly path: string;
    readonly methods: Readonly<Record<string, boolean>>;
  };
  match(path: string): boolean;
}

/** Whose GET spends what it was sent: it answers no HEAD, which link previews send. */
const WITHOUT_HEAD = new RouteTable([['/oauth/callback', true]]);

/** The template of the route that takes what no other route took. */
export const FALLBACK_TEMPLATE = '/{*path}';

/**
 * The methods that routes of an application answer for a path, as the router matches it; none where nothing is. The
 * fallback does not count.
 */
export function allowedMethods(application: Application, path: string): string[] {
  const methods = new Set<string>();
  for (const layer of application.router.stack as unknown as Layer[]) {
    if (!layer.route || layer.route.path === FALLBACK_TEMPLATE || !layer.match(path)) continue;
    for (const method of Object.keys(layer.route.methods)) methods.add(method.toUpperCase());
  }
  if (methods.has('GET') && !WITHOUT_HEAD.of(path)) methods.add('HEAD'); // by the handler of GET
  return [...methods];
}
