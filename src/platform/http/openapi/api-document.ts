import type { RoutePolicies } from '#platform/http/routing/route-policies.js';
import { RouteTable } from '#platform/http/routing/route-table.js';
import type { ApiDescription } from './api-description.js';
import { isLoopbackHost } from '#platform/text/loopback.js';
import { Components } from './components.js';
import type { OpenApiDocument, OperationObject } from './document-types.js';
import { SAMPLE_ORIGIN, withExample, type OperationExample } from './operation-example.js';
import { operationOf, pathOf, SECURITY_SCHEMES } from './operations.js';
import { RESPONSE_HEADERS } from './responses.js';

/**
 * Makes the OpenAPI document. It has the routes that belong to a group and declare their responses.
 *
 * @param examples a recorded request with its response for each operation, by the name of the
 *   operation
 * @param baseUrl the base URL of the service
 */
export function apiDocument(
  { routes }: Pick<RoutePolicies, 'routes'>,
  { title, version, description, groups, refusalsOfScope }: ApiDescription,
  examples: Readonly<Record<string, OperationExample>>,
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
    const operation = operationOf(whole, group, components);
    const operations = (paths[pathOf(route)] ??= {});
    operations[route.method.toLowerCase()] = withExample(operation, examples[policy.operation]);
  }
  const sorted = Object.entries(paths).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const document: OpenApiDocument = {
    openapi: '3.1.1',
    info: {
      title,
      version,
      description,
      contact: { name: 'Documentation of this service', url: `${baseUrl}/docs/api` },
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    jsonSchemaDialect: 'https://spec.openapis.org/oas/3.1/dialect/base',
    servers: [serverAt(baseUrl)],
    tags: groups.map(({ name, description: text }) => ({ name, description: text })),
    paths: Object.fromEntries(sorted),
    components: {
      schemas: components.schemas,
      responses: components.responses,
      headers: RESPONSE_HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
  const text = JSON.stringify(document).replaceAll(SAMPLE_ORIGIN, baseUrl);
  return JSON.parse(text) as OpenApiDocument;
}

/**
 * Describes the server of the document. A service on a loopback host has a relative URL (OpenAPI
 * 3.1 §4.8.5), because its absolute URL means nothing on another machine.
 */
function serverAt(baseUrl: string): OpenApiDocument['servers'][number] {
  return { url: isLoopbackHost(new URL(baseUrl).hostname) ? '/' : baseUrl };
}
