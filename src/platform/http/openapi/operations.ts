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
import { responsesOf } from './responses.js';

/** The methods whose body has a meaning (RFC 9110 §9.3). */
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/** Describes a route as an operation of the document. */
export function operationOf(
  route: CompiledRoute,
  tag: string,
  components: Components,
): OperationObject {
  const { policy } = route;
  const parameters = parametersOf(route, components);
  const requestBody = requestBodyOf(route, components);
  return {
    operationId: operationIdOf(route),
    summary: policy.summary,
    description: describe(policy),
    tags: [tag],
    security: securityOf(policy),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: responsesOf(route, components),
  };
}

/** Writes the path of a route as OpenAPI does: `/v1/keys/{id}`. */
export function pathOf({ template }: Pick<CompiledRoute, 'template'>): string {
  return template.replaceAll(/:(\w+)/g, '{$1}');
}

/**
 * Makes the id of an operation from its method and path, so that no rename in the code changes it:
 * `deleteV1KeysById`.
 */
function operationIdOf({ method, template }: CompiledRoute): string {
  const words = template
    .replaceAll(/:(\w)/g, (_, letter: string) => `By${letter.toUpperCase()}`)
    .split(/[^A-Za-z0-9]+/);
  const path = words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
  return method.toLowerCase() + path;
}

function describe({ tier, auth, query, body }: RoutePolicy): string {
  const { session, scope, touchedWithinSeconds, headerOnly } = auth;
  const token = session === 'program' ? 'The API token' : 'An access token';
  const lines = [
    `Rate limit: ${tier}.`,
    scope === undefined ? '' : `${token} needs the scope \`${scope}\`.`,
    headerOnly === true ? 'No cookie opens this address.' : '',
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
  const inPath = names.map((name) => ({
    name,
    in: 'path' as const,
    required: true,
    schema: { type: 'string' },
  }));
  const headers = Object.entries(policy.asks.headers ?? {}).map(([name, description]) => ({
    name,
    in: 'header' as const,
    required: false,
    description,
    schema: { type: 'string' },
  }));
  const query = schemas.query ?? policy.asks.query;
  return [...inPath, ...(query ? inQuery(query, components) : []), ...headers];
}

function inQuery(schema: ZodType, components: Components): ParameterObject[] {
  const { properties = {}, required = [] } = components.schemaOf(schema, 'input') as {
    readonly properties?: Readonly<Record<string, Record<string, unknown>>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
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
  return { required: !schema.safeParse(undefined).success, content };
}

function securityOf({ auth, asks }: RoutePolicy): OperationObject['security'] {
  if (auth.session === 'none') return asks.proof === undefined ? [] : PROOFS[asks.proof];
  if (auth.session === 'provisioner') return [{ scimToken: [] }];
  if (auth.session === 'program') return [{ apiToken: [auth.scope] }];
  return sessionSchemes(auth);
}

function sessionSchemes({ scope, headerOnly, session }: AuthRule): OperationObject['security'] {
  const scopes = scope === undefined ? [] : [scope];
  const schemes = [
    ...(headerOnly === true ? [] : [{ sessionCookie: [] }]),
    { bearer: scopes },
    { dpop: scopes },
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
