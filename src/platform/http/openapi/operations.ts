import type { ZodType } from 'zod';
import type { CompiledRoute } from '#platform/http/routing/route-policies.js';
import type {
  AuthRule,
  BodyKind,
  ClientProof,
  RoutePolicy,
} from '#platform/http/routing/route-policy.js';
import type { Components } from './components.js';
import type { ContentObject, OperationObject, ParameterObject } from './document-types.js';
import { errorCodesOf, responsesOf } from './responses.js';

/** The methods whose body has a meaning (RFC 9110 §9.3). */
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/**
 * Describes a route as an operation of the OpenAPI document. The operation belongs to the group
 * that `tag` names.
 */
export function operationOf(
  route: CompiledRoute,
  tag: string,
  components: Components,
): OperationObject {
  const { policy } = route;
  const parameters = parametersOf(route, components);
  const requestBody = requestBodyOf(route, components);
  return {
    operationId: policy.operation,
    summary: policy.summary,
    description: describe(policy),
    tags: [tag],
    security: securityOf(policy),
    ...(policy.auth.scope === undefined ? {} : { 'x-scope': policy.auth.scope }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: responsesOf(route, components),
    'x-error-codes': errorCodesOf(route),
  };
}

/** Writes the path of a route as OpenAPI does: `/v1/keys/{id}`. */
export function pathOf({ template }: Pick<CompiledRoute, 'template'>): string {
  return template.replaceAll(/:(\w+)/g, '{$1}');
}

function describe({ tier, auth, query, body }: RoutePolicy): string {
  const { session, scope, touchedWithinSeconds, headerOnly } = auth;
  const token = session === 'program' ? 'The API token' : 'An access token';
  const lines = [
    `Rate limit: ${tier}.`,
    scope === undefined ? '' : `${token} needs the scope \`${scope}\`.`,
    headerOnly === true ? 'No cookie opens this URL.' : '',
    touchedWithinSeconds === undefined
      ? ''
      : `It needs a touch of the security key within the last ${touchedWithinSeconds} seconds (RFC 9470).`,
    body.kind === 'none' ? '' : `The body has at most ${body.max} bytes.`,
    query === 'strict'
      ? 'An unknown query parameter is refused.'
      : 'Unknown query parameters are ignored.',
  ];
  return lines.filter((line) => line !== '').join(' ');
}

function parametersOf(
  { template, schemas, policy }: CompiledRoute,
  components: Components,
): ParameterObject[] {
  const names = [...template.matchAll(/:(\w+)/g)].map(([, name]) => name ?? '');
  const described = new Map(
    schemas.param ? of(schemas.param, 'path', components).map((one) => [one.name, one]) : [],
  );
  const inPath = names.map((name) => ({
    name,
    in: 'path' as const,
    required: true,
    schema: { type: 'string' },
    ...described.get(name),
    ...(policy.asks.path?.[name] === undefined ? {} : { description: policy.asks.path[name] }),
  }));
  const headers = Object.entries(policy.asks.headers ?? {}).map(([name, description]) => ({
    name,
    in: 'header' as const,
    required: false,
    description,
    schema: { type: 'string' },
  }));
  const query = schemas.query ?? policy.asks.query;
  return [...inPath, ...(query ? of(query, 'query', components) : []), ...headers];
}

/** Describes the parameters of a path or a query by the schema that validates them. */
function of(schema: ZodType, place: 'path' | 'query', components: Components): ParameterObject[] {
  const { properties = {}, required = [] } = components.schemaOf(schema, 'input') as {
    readonly properties?: Readonly<Record<string, Record<string, unknown>>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    ...(typeof description === 'string' ? { description } : {}),
    schema: rest,
  }));
}

const REQUEST_TYPES = {
  json: 'application/json',
  raw: 'application/json',
  scim: 'application/scim+json',
  form: 'application/x-www-form-urlencoded',
  fields: 'application/x-www-form-urlencoded',
} as const satisfies Record<Exclude<BodyKind, 'none'>, string>;

function requestBodyOf(
  { method, schemas, policy }: CompiledRoute,
  components: Components,
): OperationObject['requestBody'] {
  const { kind } = policy.body;
  const schema = schemas.body ?? policy.asks.body;
  if (schema === undefined || kind === 'none' || !METHODS_WITH_BODY.has(method)) return undefined;
  const body = { schema: components.schemaOf(schema, 'input') };
  const types = kind === 'scim' ? [REQUEST_TYPES.scim, REQUEST_TYPES.json] : [REQUEST_TYPES[kind]];
  const content: ContentObject = Object.fromEntries(types.map((type) => [type, body]));
  const { description = 'The body.' } = schema;
  return { description, required: !schema.safeParse(undefined).success, content };
}

function securityOf({ auth, asks }: RoutePolicy): OperationObject['security'] {
  if (auth.session === 'none') return asks.proof === undefined ? [] : PROOFS[asks.proof];
  if (auth.session === 'provisioner') return [{ scimToken: [] }];
  if (auth.session === 'program') return [{ apiToken: [] }];
  return sessionSchemes(auth);
}

function sessionSchemes({ headerOnly, session }: AuthRule): OperationObject['security'] {
  const schemes = [
    ...(headerOnly === true ? [] : [{ sessionCookie: [] }]),
    { bearer: [] },
    { dpop: [] },
  ];
  return session === 'optional' ? [...schemes, {}] : schemes;
}

const PROOFS: Readonly<Record<ClientProof, OperationObject['security']>> = {
  client: [{ clientSecretBasic: [] }, { mutualTls: [] }, {}],
  accessToken: [{ bearer: [] }, { dpop: [] }],
  registrationToken: [{ registrationToken: [] }],
};

/** The ways in which a client can authenticate a request. */
export const SECURITY_SCHEMES: Readonly<Record<string, object>> = {
  sessionCookie: {
    type: 'apiKey',
    in: 'cookie',
    name: 'svc_session',
    description: 'The session of a browser. A write needs our own Origin.',
  },
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'An access token (RFC 6750), or the token of a session.',
  },
  dpop: {
    type: 'http',
    scheme: 'DPoP',
    description:
      'An access token that is bound to a key, with a proof in the header DPoP (RFC 9449).',
  },
  scimToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'A SCIM token, which an admin of the organization made.',
  },
  apiToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'An API token of a program, which an admin of the organization made.',
  },
  registrationToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'The token that came with the registration of a client (RFC 7592).',
  },
  clientSecretBasic: {
    type: 'http',
    scheme: 'basic',
    description: 'The id and the secret of a client. `private_key_jwt` is in the form instead.',
  },
  mutualTls: { type: 'mutualTLS', description: 'The certificate of a client (RFC 8705).' },
};
