import type { RoutePolicies } from '#platform/http/routing/route-policies.js';
import { RouteTable } from '#platform/http/routing/route-table.js';
import type { ApiDescription } from './api-description.js';
import { Components } from './components.js';
import type { OpenApiDocument, OperationObject } from './document-types.js';
import { operationOf, pathOf, SECURITY_SCHEMES } from './operations.js';
import { RESPONSE_HEADERS } from './responses.js';

/**
 * Makes the OpenAPI document. It has the routes that belong to a group and declare their responses.
 */
export function apiDocument(
  { routes }: Pick<RoutePolicies, 'routes'>,
  { title, version, description, groups, refusalsOfScope }: ApiDescription,
  baseUrl: string,
): OpenApiDocument {
  const components = new Components();
  const groupOf = new RouteTable(
    groups.flatMap(({ name, paths }) => paths.map((path) => [path, name] as const)),
  );
  const paths: Record<string, Record<string, OperationObject>> = {};
  for (const route of routes.filter(({ policy }) => Object.keys(policy.answers).length > 0)) {
    const group = groupOf.of(route.template);
    if (group === undefined) continue;
    const { policy } = route;
    const ofScope = refusalsOfScope[policy.auth.scope ?? ''] ?? [];
    const whole = { ...route, policy: { ...policy, refusals: [...policy.refusals, ...ofScope] } };
    const operations = (paths[pathOf(route)] ??= {});
    operations[route.method.toLowerCase()] = operationOf(whole, group, components);
  }
  const sorted = Object.entries(paths).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    openapi: '3.1.1',
    info: {
      title,
      version,
      description,
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    jsonSchemaDialect: 'https://spec.openapis.org/oas/3.1/dialect/base',
    servers: [{ url: baseUrl }],
    tags: groups.map(({ name, description: text }) => ({ name, description: text })),
    paths: Object.fromEntries(sorted),
    components: {
      schemas: components.schemas,
      responses: components.responses,
      headers: RESPONSE_HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}
