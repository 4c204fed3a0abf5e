import type { IncomingMessage } from 'node:http';
import { FALLBACK_TEMPLATE } from './allowed-methods.js';

/** Where requests are counted that no route took: of the fallback, and of steps that answer before the router. */
export const UNMATCHED = '<unmatched>';

/** As many as there are routes. */
const templates = new Map([[FALLBACK_TEMPLATE, UNMATCHED]]);

/**
 * The template of the route that took a request, parameters as `{id}`: `/v1/keys/{id}`. What a client wrote in its place
 * is never in it. {@link UNMATCHED} where none took it.
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
