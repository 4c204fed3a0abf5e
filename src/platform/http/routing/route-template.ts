import type { IncomingMessage } from 'node:http';
import { FALLBACK_TEMPLATE } from './route-policies.js';

/**
 * The label in metrics and logs for requests that no route takes. The fallback route answers them,
 * or a step before the router.
 */
export const UNMATCHED = '<unmatched>';

/**
 * The templates with their parameters as `{id}`, by their spelling in Express, so that each is
 * converted once. The map has at most one entry for each route.
 */
const templates = new Map([[FALLBACK_TEMPLATE, UNMATCHED]]);

/**
 * Returns the template of the route that took a request, with parameters as `{id}`:
 * `/v1/keys/{id}`. It never contains values that a client sent. The result is {@link UNMATCHED} if
 * no route took the request.
 */
export function routeTemplateOf(request: IncomingMessage): string {
  const path = (request as { readonly route?: { readonly path: string } }).route?.path;
  if (path === undefined) return UNMATCHED;
  let template = templates.get(path);
  if (template === undefined) {
    template = path.replace(/[:*](\w+)/g, '{$1}');
    templates.set(path, template);
  }
  return template;
}
