import { STATUS_CODES } from 'node:http';
import { ZodType } from 'zod';
import { CATALOGUE, type ErrorCode } from '#platform/errors/catalogue.js';
import type { CompiledRoute } from '#platform/http/routing/route-policies.js';
import type { MediaTypes, RoutePolicy } from '#platform/http/routing/route-policy.js';
import type { Components } from './components.js';
import type { ContentObject, JsonSchema, Reference, ResponseObject } from './document-types.js';
import {
  OAUTH_ERROR,
  oauthExample,
  PROBLEM,
  problemExample,
  SCIM_ERROR,
  scimExample,
} from './error-schemas.js';
import { errorTypesOf, refusalsOf } from './refusals.js';

type Responses = Record<string, ResponseObject | Reference>;

/**
 * Describes every response of a route. All routes share the response of an error status, so that
 * response cannot list the error codes of one route: {@link errorCodesOf} lists them.
 */
export function responsesOf(route: CompiledRoute, components: Components): Responses {
  const { policy } = route;
  const responses: Responses = {};
  for (const [status, answer] of Object.entries(policy.answers)) {
    const description = descriptionOf(answer) ?? STATUS_CODES[status] ?? status;
    responses[status] = {
      description,
      ...(answer === null ? {} : { content: contentOf(answer, policy, components) }),
    };
  }
  for (const status of Object.keys(errorCodesOf(route))) {
    responses[status] = refusal(Number(status), policy, components);
  }
  return responses;
}

/** Returns the codes of the errors of a route, by status. Each code has a page at `/errors`. */
export function errorCodesOf(
  route: Omit<CompiledRoute, 'handler'>,
): Readonly<Record<string, readonly ErrorCode[]>> {
  return Object.fromEntries(Map.groupBy(refusalsOf(route), (code) => CATALOGUE[code].status));
}

/** Returns the description of the first schema of a response that has one. */
function descriptionOf(answer: ZodType | MediaTypes | null): string | undefined {
  if (answer === null) return undefined;
  if (answer instanceof ZodType) return answer.description;
  const described = Object.values(answer).find((body) => body instanceof ZodType);
  return described instanceof ZodType ? described.description : undefined;
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

/** The first word in the name of an error response, by the format of its errors. */
const FORMATS = {
  problem: '',
  oauth: 'OAuth',
  scim: 'Scim',
  html: 'Page',
  negotiated: 'PageOrProblem',
} as const satisfies Record<RoutePolicy['errors'], string>;

/** Adds the response of one status in one format of errors, and returns a reference to it. */
function refusal(status: number, { errors }: RoutePolicy, components: Components): Reference {
  const words = (STATUS_CODES[status] ?? String(status)).replaceAll(/[^A-Za-z]/g, '');
  return components.keep(`${FORMATS[errors]}${words}`, () => ({
    description: `${STATUS_CODES[status]}. The operation lists the codes as \`x-error-codes\`.`,
    ...headersOf(status),
    content: Object.fromEntries(
      errorTypesOf({ errors }).map((type) => [type, errorBody(type, status, errors, components)]),
    ),
  }));
}

function errorBody(
  type: string,
  status: number,
  errors: RoutePolicy['errors'],
  components: Components,
): ContentObject[string] {
  if (type === 'text/html') return { schema: RAW.text };
  const row = Object.entries(CATALOGUE).find((entry) => entry[1].status === status);
  if (row === undefined) throw new Error(`no error has the status ${status}`);
  const code = row[0] as ErrorCode;
  if (type === 'application/problem+json') {
    return { schema: components.schemaOf(PROBLEM, 'output'), example: problemExample(code) };
  }
  return errors === 'scim'
    ? { schema: components.schemaOf(SCIM_ERROR, 'output'), example: scimExample(code) }
    : { schema: components.schemaOf(OAUTH_ERROR, 'output'), example: oauthExample(code) };
}

const header = (name: string): Reference => ({ $ref: `#/components/headers/${name}` });

/**
 * The headers that tell a client what to do after an error, by status. Headers that every response
 * has are described only in the document's text. If they were listed, a generator of clients would
 * write code for each of them in each response.
 */
const HEADERS: Readonly<Record<number, ResponseObject['headers']>> = {
  401: { 'www-authenticate': header('www-authenticate') },
  429: { 'retry-after': header('retry-after') },
};

function headersOf(status: number): Pick<ResponseObject, 'headers'> {
  const headers = HEADERS[status];
  return headers === undefined ? {} : { headers };
}

/** The descriptions of the headers to which responses of the document refer. */
export const RESPONSE_HEADERS: Readonly<Record<string, object>> = {
  'retry-after': {
    description: 'The seconds until the next request is let in.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'www-authenticate': {
    description: 'The required scheme, the error and the metadata of the resource (RFC 9728).',
    schema: { type: 'string' },
  },
};
