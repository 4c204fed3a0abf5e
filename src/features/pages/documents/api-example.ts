import type {
  OperationObject,
  ParameterObject,
  ResponseObject,
} from '#platform/http/openapi/document-types.js';

/**
 * An example of a call of an operation, as the page shows it: the command lines, and the response.
 */
export interface ShownExample {
  readonly curl: string;
  /**
   * The command line of `svc api`; undefined if the route does not accept the token of this
   * command.
   */
  readonly svc: string | undefined;
  /** The body of the response; undefined if it has none. */
  readonly answer: string | undefined;
  readonly status: string;
}

/** An operation of the API with its path and its HTTP method in the OpenAPI document. */
interface Placed {
  readonly path: string;
  readonly method: string;
  readonly operation: OperationObject;
}

/**
 * The shell variable that contains the credential in an example, by the name of the security scheme
 * in the OpenAPI document.
 */
const TOKENS: Readonly<Record<string, string>> = {
  bearer: 'TOKEN',
  scimToken: 'SCIM_TOKEN',
  apiToken: 'API_TOKEN',
  registrationToken: 'REGISTRATION_TOKEN',
};

const FORM = 'application/x-www-form-urlencoded';

/**
 * Makes the example of an operation: a line of `curl`, a line of `svc api` and the response.
 * @param server the base URL of the service
 */
export function exampleOf(placed: Placed, server: string): ShownExample {
  const { operation } = placed;
  return {
    curl: curlLine(placed, server),
    svc: svcLine(placed),
    ...answerOf(operation),
  };
}

function curlLine({ method, path, operation }: Placed, server: string): string {
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const body = media?.example;
  const isGet = method === 'get' || (method === 'post' && body !== undefined);
  const token = operation.security.flatMap((one) => Object.keys(one)).find((one) => one in TOKENS);
  const parts = [
    `curl${isGet ? '' : ` -X ${method.toUpperCase()}`} ${quoted(server + targetOf(path, operation))}`,
    ...(token === undefined ? [] : [`-H "Authorization: Bearer $${TOKENS[token]}"`]),
    ...valuesIn('header', operation).map(
      ({ name, example }) => `-H ${quoted(`${name}: ${String(example)}`)}`,
    ),
    ...(body === undefined || type === undefined ? [] : bodyParts(type, body)),
  ];
  return parts.join(' \\\n  ');
}

function bodyParts(type: string, body: unknown): string[] {
  if (type === FORM) {
    const fields = Object.entries(body as Readonly<Record<string, unknown>>);
    return fields.map(([name, value]) => `--data-urlencode ${quoted(`${name}=${String(value)}`)}`);
  }
  return [`-H ${quoted(`Content-Type: ${type}`)}`, `--data ${quoted(JSON.stringify(body))}`];
}

/**
 * Writes the line of `svc api`, which sends the token of `svc login --admin`. That token opens the
 * routes that accept an access token with a scope. For any other route the result is undefined.
 */
function svcLine({ method, path, operation }: Placed): string | undefined {
  const isForSession = operation.security.some((one) => 'dpop' in one);
  if (!isForSession || operation['x-scope'] === undefined) return undefined;
  const [media] = Object.values(operation.requestBody?.content ?? {});
  const ifMatch = valuesIn('header', operation).find(({ name }) => name === 'if-match');
  const parts = [
    `svc api ${method.toUpperCase()} ${quoted(targetOf(path, operation))}`,
    ...(media?.example === undefined ? [] : [`--data ${quoted(JSON.stringify(media.example))}`]),
    ...(ifMatch === undefined ? [] : [`--if-match ${quoted(String(ifMatch.example))}`]),
  ];
  return parts.join(' \\\n  ');
}

/**
 * Returns the path and the query of the example. A path parameter without an example stays as
 * `{name}`, and a query parameter without an example is left out.
 */
function targetOf(path: string, operation: OperationObject): string {
  const target = valuesIn('path', operation).reduce(
    (text, { name, example }) => text.replace(`{${name}}`, encodeURIComponent(String(example))),
    path,
  );
  const query = new URLSearchParams();
  for (const { name, example } of valuesIn('query', operation)) query.set(name, String(example));
  return query.size === 0 ? target : `${target}?${query.toString()}`;
}

function valuesIn(place: ParameterObject['in'], { parameters = [] }: OperationObject) {
  return parameters.filter((one) => one.in === place && one.example !== undefined);
}

function answerOf({ responses }: OperationObject): Pick<ShownExample, 'status' | 'answer'> {
  const successes = Object.entries(responses).filter(([status]) => status < '400');
  const bodies = successes.flatMap(([status, response]) =>
    exampleBodies(response).map((body) => ({ status, body })),
  );
  const [shown] = bodies;
  if (shown === undefined) return { status: successes.at(-1)?.[0] ?? '', answer: undefined };
  const { status, body } = shown;
  return { status, answer: typeof body === 'string' ? body : JSON.stringify(body, null, 2) };
}

function exampleBodies(response: ResponseObject | { readonly $ref: string }): unknown[] {
  if ('$ref' in response) return [];
  return Object.values(response.content ?? {}).flatMap(({ example }) =>
    example === undefined ? [] : [example],
  );
}

/** Quotes a word for the shell, so that no character of the word has a special meaning there. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
