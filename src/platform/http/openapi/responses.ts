import { STATUS_CODES } from 'node:http';
import { ZodType } from 'zod';
import { CATALOGUE, type ErrorCode } from '#platform/errors/catalogue.js';
import type { CompiledRoute } from '#platform/http/routing/route-policies.js';
import type { MediaTypes, RoutePolicy } from '#platform/http/routing/route-policy.js';
import type { Components } from './components.js';
import type { ContentObject, JsonSchema, Reference, ResponseObject } from './document-types.js';
import { OAUTH_ERROR, PROBLEM, SCIM_ERROR } from './error-schemas.js';
import { errorTypesOf, refusalsOf } from './refusals.js';

type Responses = Record<string, ResponseObject | Reference>;

/** Describes every response of a route. */
export function responsesOf(route: CompiledRoute, components: Components): Responses {
  const { policy } = route;
  const responses: Responses = {};
  for (const [status, answer] of Object.entries(policy.answers)) {
    responses[status] = {
      description: STATUS_CODES[status] ?? status,
      headers: headersOf(Number(status)),
      ...(answer === null ? {} : { content: contentOf(answer, policy, components) }),
    };
  }
  const byStatus = Map.groupBy(refusalsOf(route), (code) => CATALOGUE[code].status);
  for (const [status, codes] of byStatus) {
    const stated = responses[status];
    responses[status] =
      stated === undefined
        ? refusal(status, codes, policy, components)
        : { ...refusalBody(status, codes, policy, components), ...stated, 'x-error-codes': codes };
  }
  return responses;
}

/** Returns the content of a response that a route declares. A single schema means a JSON body. */
function contentOf(
  answer: ZodType | MediaTypes,
  { errors }: RoutePolicy,
  components: Components,
): ContentObject {
  const json = errors === 'scim' ? 'application/scim+json' : 'application/json';
  const types: MediaTypes = answer instanceof ZodType ? { [json]: answer } : answer;
  const rows = Object.entries(types).map(([type, body]) => [
    type,
    { schema: body instanceof ZodType ? components.schemaOf(body, 'output') : RAW[body] },
  ]);
  return Object.fromEntries(rows) as ContentObject;
}

/** The schema of a body that is not JSON. OpenAPI 3.1 gives bytes an empty schema. */
const RAW = { text: { type: 'string' }, binary: {} } as const satisfies Record<string, JsonSchema>;

/**
 * Adds the response of one status for some error codes. Routes with the same codes share one
 * component.
 */
function refusal(
  status: number,
  codes: readonly ErrorCode[],
  policy: RoutePolicy,
  components: Components,
): Reference {
  const name = [status, policy.errors, ...codes].join('.');
  return components.keep(name, refusalBody(status, codes, policy, components));
}

function refusalBody(
  status: number,
  codes: readonly ErrorCode[],
  policy: RoutePolicy,
  components: Components,
): ResponseObject {
  const titles = codes.map((code) => `\`${code}\`: ${CATALOGUE[code].title}.`);
  const rows = errorTypesOf(policy).map((type) => [
    type,
    { schema: errorSchema(type, codes, policy, components) },
  ]);
  return {
    description: titles.join(' '),
    headers: headersOf(status),
    content: Object.fromEntries(rows) as ContentObject,
    'x-error-codes': codes,
  };
}

function errorSchema(
  type: string,
  codes: readonly ErrorCode[],
  { errors }: RoutePolicy,
  components: Components,
): JsonSchema {
  if (type === 'text/html') return RAW.text;
  if (type === 'application/problem+json') {
    const code = { type: 'object', properties: { code: { enum: codes } } };
    return { allOf: [components.schemaOf(PROBLEM, 'output'), code] };
  }
  return components.schemaOf(errors === 'scim' ? SCIM_ERROR : OAUTH_ERROR, 'output');
}

const header = (name: string): Reference => ({ $ref: `#/components/headers/${name}` });

const ALWAYS = {
  'x-ratelimit-limit': header('x-ratelimit-limit'),
  'x-ratelimit-remaining': header('x-ratelimit-remaining'),
  'x-fapi-interaction-id': header('x-fapi-interaction-id'),
};

function headersOf(status: number): Readonly<Record<string, Reference>> {
  if (status === 401) return { ...ALWAYS, 'www-authenticate': header('www-authenticate') };
  if (status === 429) {
    const wait = { 'retry-after': header('retry-after') };
    return { ...ALWAYS, ...wait, 'x-ratelimit-after': header('x-ratelimit-after') };
  }
  return ALWAYS;
}

/** The descriptions of the headers to which responses of the document refer. */
export const RESPONSE_HEADERS: Readonly<Record<string, object>> = {
  'x-ratelimit-limit': whole('The burst of the tier of this route, in requests.', true),
  'x-ratelimit-remaining': whole('The requests that are left at once.', true),
  'x-ratelimit-after': whole('The seconds until the next request is let in.', true),
  'retry-after': whole('The seconds until the next request is let in.', true),
  'x-fapi-interaction-id': {
    description: 'The id of the request, which logs and audit events name.',
    required: true,
    schema: { type: 'string' },
  },
  'www-authenticate': {
    description: 'The required scheme, the error and the metadata of the resource (RFC 9728).',
    schema: { type: 'string' },
  },
};

function whole(description: string, required: boolean): object {
  return { description, required, schema: { type: 'integer', minimum: 0 } };
}
