import type { Application } from 'express';
import { FALLBACK_TEMPLATE } from './route-policies.js';

/**
 * The members of a layer, which is a registered handler of Express, that say which paths and
 * methods it serves.
 */
interface Layer {
  readonly route?: {
    readonly path: string;
    readonly methods: Readonly<Record<string, boolean>>;
  };
  match(path: string): boolean;
}

/**
 * Lists the methods that the routes of an application serve at a path, in the same way as the
 * router matches the path. The list is empty if only the fallback route serves the path.
 *
 * @param head true if HEAD works like GET at this path
 */
export function allowedMethods(application: Application, path: string, head: boolean): string[] {
  const methods = new Set<string>();
  for (const layer of application.router.stack as unknown as Layer[]) {
    if (!layer.route || layer.route.path === FALLBACK_TEMPLATE || !layer.match(path)) continue;
    for (const method of Object.keys(layer.route.methods)) methods.add(method.toUpperCase());
  }
  if (methods.has('GET') && head) methods.add('HEAD');
  return [...methods];
}
