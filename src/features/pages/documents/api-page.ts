import type {
  ContentObject,
  JsonSchema,
  OpenApiDocument,
  OperationObject,
  ResponseObject,
} from '#platform/http/openapi/document-types.js';
import { exampleOf, type ShownExample } from './api-example.js';
import { componentsIn, rowsOf, typeOf, type SchemaRow } from './schema-rows.js';

/** A group of operations in the index of the API's documentation. */
interface ListedGroup {
  readonly name: string;
  readonly description: string;
  readonly slug: string;
  readonly operations: readonly ListedOperation[];
}

/** An operation of the API, as the index of the documentation lists it. */
interface ListedOperation {
  readonly id: string;
  readonly label: string;
  readonly summary: string;
  /**
   * The names of its parameters, and the names of members in its body. The search finds these words
   * too.
   */
  readonly words: string;
}

/**
 * The body of a request or response, as the page shows it: its media types, its type, and a row for
 * each member.
 */
interface ShownBody {
  readonly types: string;
  readonly type: string;
  readonly rows: readonly SchemaRow[];
}

/** A response of an operation, as the page shows it. */
interface ShownResponse {
  readonly status: string;
  readonly description: string;
  readonly body: ShownBody | undefined;
}

/** The error codes that have one HTTP status, as the page shows them. */
interface ShownRefusal {
  readonly status: string;
  readonly codes: readonly string[];
}

/** An operation of the API, as the page of its group shows it. */
interface ShownOperation {
  readonly id: string;
  readonly label: string;
  readonly summary: string;
  readonly description: string;
  readonly credentials: string;
  readonly parameters: readonly (SchemaRow & { readonly place: string })[];
  readonly body: ShownBody | undefined;
  readonly answers: readonly ShownResponse[];
  /** The errors of the operation that are not errors of every operation of the group. */
  readonly refusals: readonly ShownRefusal[];
  readonly example: ShownExample;
}

/** The data that the page of a group of operations shows. */
export interface GroupPage {
  readonly name: string;
  readonly description: string;
  readonly operations: readonly ShownOperation[];
  /** The errors that every operation of the group can give. */
  readonly shared: readonly ShownRefusal[];
  readonly objects: readonly {
    readonly name: string;
    readonly description: string;
    readonly rows: readonly SchemaRow[];
  }[];
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
      operations: operationsOf(document, name).map((placed) => listed(placed, document)),
    }))
    .filter(({ operations }) => operations.length > 0);
}

function listed(
  { path, method, operation }: Placed,
  { components }: OpenApiDocument,
): ListedOperation {
  const { operationId, summary, parameters = [], requestBody } = operation;
  const [body] = Object.values(requestBody?.content ?? {});
  const { $ref } = body?.schema ?? {};
  const name = typeof $ref === 'string' ? $ref.slice('#/components/schemas/'.length) : '';
  const { properties = {} } = components.schemas[name] ?? body?.schema ?? {};
  const words = [...parameters.map((one) => one.name), ...Object.keys(properties as object)];
  return {
    id: operationId,
    label: `${method.toUpperCase()} ${path}`,
    summary,
    words: [...new Set(words)].join(' '),
  };
}

/**
 * Makes the data of the page that documents one group of operations; undefined if no group has the
 * slug.
 * @param server the base URL of the service
 */
export function groupPage(
  document: OpenApiDocument,
  slug: string,
  server: string,
): GroupPage | undefined {
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
    .map((name) => ({ name, ...objectOf(schemas[name] ?? {}) }));
  const shared = sharedCodes(placed);
  const operations = placed.map((one) => ({
    ...shown(one, shared),
    example: exampleOf(one, server),
  }));
  return { ...tag, operations, shared: refusalsOf(placed[0]?.operation, shared), objects };
}

/**
 * Returns a test that is true for an error code that every operation of a group can give. In a
 * group with one operation no code counts as shared.
 */
function sharedCodes(placed: readonly Placed[]): (code: string) => boolean {
  const sets = placed.map(
    ({ operation }) => new Set(Object.values(operation['x-error-codes']).flat()),
  );
  return (code) => sets.length > 1 && sets.every((codes) => codes.has(code));
}

/**
 * Returns the error codes of an operation that pass the test `isMeant`, grouped by their HTTP
 * status.
 */
function refusalsOf(
  operation: OperationObject | undefined,
  isMeant: (code: string) => boolean,
): ShownRefusal[] {
  return Object.entries(operation?.['x-error-codes'] ?? {})
    .map(([status, codes]) => ({ status, codes: codes.filter(isMeant) }))
    .filter(({ codes }) => codes.length > 0);
}

/**
 * The schemas of errors. The page of a group leaves them out, because each error code has its own
 * page.
 */
const ERRORS = new Set(['Problem', 'OAuthError', 'ScimError']);

/**
 * Describes an object. A schema without properties, such as a choice between objects, gets one row.
 */
function objectOf(schema: JsonSchema): {
  readonly description: string;
  readonly rows: readonly SchemaRow[];
} {
  const { description } = schema;
  const rows = rowsOf(schema);
  const choice = { name: 'value', type: typeOf(schema), required: true, description: '' };
  return {
    description: typeof description === 'string' ? description : '',
    rows: rows.length > 0 ? rows : [choice],
  };
}

function operationsOf({ paths }: OpenApiDocument, tag: string): Placed[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { tags }]) => tags.includes(tag))
      .map(([method, operation]) => ({ path, method, operation })),
  );
}

function shown(
  { path, method, operation }: Placed,
  isShared: (code: string) => boolean,
): Omit<ShownOperation, 'example'> {
  const { requestBody, responses } = operation;
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
    body: requestBody && shownBody(requestBody.content),
    answers: Object.entries(responses).flatMap(([status, response]) =>
      '$ref' in response ? [] : [shownResponse(status, response)],
    ),
    refusals: refusalsOf(operation, (code) => !isShared(code)),
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

function shownResponse(status: string, { description, content }: ResponseObject): ShownResponse {
  return { status, description, body: content && shownBody(content) };
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
