import type {
  ContentObject,
  OperationObject,
  ParameterObject,
  Reference,
  ResponseObject,
} from './document-types.js';

/**
 * The origin of the service in recorded examples. The OpenAPI document has the real origin in place
 * of it.
 */
export const SAMPLE_ORIGIN = 'https://svc.example';

/** An example that shows what an operation does: one request with its response. */
export interface OperationExample {
  /** The values of the parameters of the path, the query and the headers, by their names. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** The body of the request: JSON, or the fields of a form. */
  readonly body?: unknown;
  readonly answer: {
    readonly status: number;
    /** The media type of the body; undefined if there is no body. */
    readonly type?: string;
    /** The body: JSON, or text. A body of bytes has no example. */
    readonly body?: unknown;
  };
  /**
   * The values of parameters that the request of this example does not have, from further requests.
   */
  readonly others?: Readonly<Record<string, unknown>>;
  /** The response bodies of further requests that had other media types, as text, by media type. */
  readonly texts?: Readonly<Record<string, string>>;
}

/**
 * Returns an operation with the parameters and bodies of its example. Without an example, the
 * operation is returned as it is.
 */
export function withExample(
  operation: OperationObject,
  example: OperationExample | undefined,
): OperationObject {
  if (example === undefined) return operation;
  const { parameters, requestBody, responses } = operation;
  return {
    ...operation,
    ...(parameters && { parameters: parameters.map((one) => withValue(one, example)) }),
    ...(requestBody &&
      'body' in example && {
        requestBody: {
          ...requestBody,
          content: eachType(requestBody.content, () => true, example.body),
        },
      }),
    responses: withTexts(withAnswer(responses, example.answer), example),
  };
}

function withValue(
  parameter: ParameterObject,
  { parameters = {}, others = {} }: OperationExample,
): ParameterObject {
  const { name } = parameter;
  if (Object.hasOwn(parameters, name)) return { ...parameter, example: parameters[name] };
  return Object.hasOwn(others, name)
    ? { ...parameter, examples: { other: { value: others[name] } } }
    : parameter;
}

/** Adds the bodies of further responses in other media types to the response of the example. */
function withTexts(
  responses: OperationObject['responses'],
  { answer: { status }, texts = {} }: OperationExample,
): OperationObject['responses'] {
  const response = responses[status];
  if (response === undefined || '$ref' in response || response.content === undefined) {
    return responses;
  }
  const { content } = response;
  const rows = Object.entries(content).map(([type, media]) => [
    type,
    texts[type] === undefined ? media : { ...media, examples: { other: { value: texts[type] } } },
  ]);
  return {
    ...responses,
    [status]: { ...response, content: Object.fromEntries(rows) as ContentObject },
  };
}

function withAnswer(
  responses: OperationObject['responses'],
  { status, type, body }: OperationExample['answer'],
): Readonly<Record<string, ResponseObject | Reference>> {
  const response = responses[status];
  if (type === undefined || body === undefined) return responses;
  if (response === undefined || '$ref' in response || response.content === undefined) {
    return responses;
  }
  const { content } = response;
  const schema = JSON.stringify(content[type]?.schema);
  const isOfSchema = (other: string) => JSON.stringify(content[other]?.schema) === schema;
  return { ...responses, [status]: { ...response, content: eachType(content, isOfSchema, body) } };
}

/** Adds an example to those media types of a content for which `isMeant` returns true. */
function eachType(
  content: ContentObject,
  isMeant: (type: string) => boolean,
  example: unknown,
): ContentObject {
  const rows = Object.entries(content).map(([type, media]) => [
    type,
    isMeant(type) ? { ...media, example } : media,
  ]);
  return Object.fromEntries(rows) as ContentObject;
}
