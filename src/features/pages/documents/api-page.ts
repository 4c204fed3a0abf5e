import type {
  ContentObject,
  JsonSchema,
  OpenApiDocument,
  OperationObject,
  Reference,
  ResponseObject,
} from '#platform/http/openapi/document-types.js';
import { componentsIn, rowsOf, typeOf, type SchemaRow } from './schema-rows.js';

/** A group of operations in the index of the API's documentation. */
interface ListedGroup {
  readonly name: string;
  readonly description: string;
  readonly slug: string;
  readonly operations: readonly { readonly label: string; readonly summary: string }[];
}

/** The body of a request or response for a template. */
interface ShownBody {
  readonly types: string;
  readonly type: string;
  readonly rows: readonly SchemaRow[];
}

/** A response for a template. */
interface ShownResponse {
  readonly status: string;
  readonly description: string;
  readonly codes: readonly string[];
  readonly body: ShownBody | undefined;
}

/** An operation for a template. */
interface ShownOperation {
  readonly id: string;
  readonly label: string;
  readonly summary: string;
  readonly description: string;
  readonly credentials: string;
  readonly parameters: readonly (SchemaRow & { readonly place: string })[];
  readonly body: ShownBody | undefined;
  readonly answers: readonly ShownResponse[];
  readonly refusals: readonly ShownResponse[];
}

/** The data that the page of a group of operations shows. */
export interface GroupPage {
  readonly name: string;
  readonly description: string;
  readonly operations: readonly ShownOperation[];
  readonly objects: readonly { readonly name: string; readonly rows: readonly SchemaRow[] }[];
}

interface Placed {
  readonly path: string;
  readonly method: string;
  readonly operation: OperationObject;
}

/** Lists the groups of the API's operations. A group without operations is left out. */
export function groupsOf(document: OpenApiDocument): ListedGroup[] {
  return document.tags
    .map(({ name, description }) => ({
      name,
      description,
      slug: slugOf(name),
      operations: operationsOf(document, name).map(({ path, method, operation }) => ({
        label: `${method.toUpperCase()} ${path}`,
        summary: operation.summary,
      })),
    }))
    .filter(({ operations }) => operations.length > 0);
}

/** Makes the data of the page of a group of operations; undefined if no group has the slug. */
export function groupPage(document: OpenApiDocument, slug: string): GroupPage | undefined {
  const tag = document.tags.find(({ name }) => slugOf(name) === slug);
  if (!tag) return undefined;
  const placed = operationsOf(document, tag.name);
  if (placed.length === 0) return undefined;
  const { schemas } = document.components;
  const parts = placed.map(({ operation }) => [
    operation.requestBody,
    Object.values(operation.responses).filter((one) => !('$ref' in one)),
  ]);
  const objects = [...componentsIn(parts, schemas)]
    .filter((name) => !ERRORS.has(name))
    .toSorted()
    .map((name) => ({ name, rows: objectRows(schemas[name] ?? {}) }));
  return { ...tag, operations: placed.map((one) => shown(one, document)), objects };
}

/**
 * The schemas of errors. The page of a group leaves them out, because each error code has its own
 * page.
 */
const ERRORS = new Set(['Problem', 'OAuthError', 'ScimError']);

/**
 * Returns the rows for the members of an object. A schema that is a choice of objects gets one row.
 */
function objectRows(schema: JsonSchema): SchemaRow[] {
  const rows = rowsOf(schema);
  if (rows.length > 0) return rows;
  return [{ name: 'value', type: typeOf(schema), required: true, description: '' }];
}

function operationsOf({ paths }: OpenApiDocument, tag: string): Placed[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { tags }]) => tags.includes(tag))
      .map(([method, operation]) => ({ path, method, operation })),
  );
}

function shown({ path, method, operation }: Placed, document: OpenApiDocument): ShownOperation {
  const responses = Object.entries(operation.responses).map(([status, response]) =>
    shownResponse(status, response, document),
  );
  return {
    id: operation.operationId,
    label: `${method.toUpperCase()} ${path}`,
    summary: operation.summary,
    description: operation.description,
    credentials: credentialsOf(operation),
    parameters: (operation.parameters ?? []).map(({ in: place, schema, ...rest }) => ({
      description: '',
      ...rest,
      place,
      type: typeOf(schema),
    })),
    body: operation.requestBody && shownBody(operation.requestBody.content),
    answers: responses.filter(({ status }) => status < '400'),
    refusals: responses.filter(({ status }) => status >= '400'),
  };
}

const CREDENTIALS: Readonly<Record<string, string>> = {
  sessionCookie: 'session cookie',
  bearer: 'Bearer token',
  dpop: 'DPoP token',
  scimToken: 'SCIM token',
  apiToken: 'API token',
  registrationToken: 'registration token',
  clientSecretBasic: 'client authentication',
  mutualTls: 'client certificate',
};

function credentialsOf({ security }: OperationObject): string {
  const names = security
    .flatMap((one) => Object.keys(one))
    .map((name) => CREDENTIALS[name] ?? name);
  return names.length === 0 ? 'none' : names.join(', ');
}

function shownResponse(
  status: string,
  response: ResponseObject | Reference,
  { components }: OpenApiDocument,
): ShownResponse {
  const name = '$ref' in response ? response.$ref.slice('#/components/responses/'.length) : '';
  const found = '$ref' in response ? components.responses[name] : response;
  return {
    status,
    description: found?.description ?? '',
    codes: found?.['x-error-codes'] ?? [],
    body: found?.content && shownBody(found.content),
  };
}

function shownBody(content: ContentObject): ShownBody {
  const types = Object.keys(content);
  const schemas = Object.values(content).map(({ schema }) => schema);
  const json = schemas.find(({ $ref, type, anyOf }) => $ref ?? anyOf ?? type === 'object');
  const schema = json ?? schemas[0] ?? {};
  return { types: types.join(', '), type: typeOf(schema), rows: rowsOf(schema) };
}

function slugOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
}
