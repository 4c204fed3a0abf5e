import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { z } from 'zod';
import type {
  JsonSchema,
  OpenApiDocument,
  OperationObject,
} from '#platform/http/openapi/document-types.js';
import type { OperationExample } from '#platform/http/openapi/operation-example.js';
import { Client, newAddress, type Answer } from '../client.js';
import type { Samples } from './samples.js';

/** The values of a request that is recorded as an example of the OpenAPI document. */
export interface Asked {
  /** The values of the parameters of the path, the query and the headers, by their names. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** The client that sends it; by default the admin's browser. */
  readonly from?: Client;
  /**
   * The value of `Authorization`, which replaces the session cookie; an empty text for no
   * credential.
   */
  readonly authorization?: string;
  /** The value of the `Accept` header. */
  readonly accept?: string;
}

/** An operation of the OpenAPI document, and where the document has it. */
interface Placed {
  readonly method: string;
  readonly path: string;
  readonly operation: OperationObject;
}

const FORM = 'application/x-www-form-urlencoded';

/** The largest number of items that a recorded list keeps. */
const MOST_ITEMS = 2;

/**
 * Sends requests to a real service, and records them as examples of the OpenAPI document. Sample
 * values replace live ones, such as ids. If a request equals the documented example, that example
 * itself is sent, with live values again. Every response must fit the document.
 */
export class Exchanges {
  readonly #recorded = new Map<string, OperationExample>();
  readonly #placed: ReadonlyMap<string, Placed>;

  constructor(
    private readonly document: OpenApiDocument,
    private readonly samples: Samples,
    private readonly browser: Client,
  ) {
    this.#placed = new Map(
      Object.entries(document.paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => [
          operation.operationId,
          { method: method.toUpperCase(), path, operation },
        ]),
      ),
    );
  }

  /**
   * The methods {@link call} and {@link also}, bound to this object, so that they can be
   * destructured.
   */
  get bound(): Pick<Exchanges, 'call' | 'also'> {
    return {
      call: (name, asked) => this.call(name, asked),
      also: (name, asked) => this.also(name, asked),
    };
  }

  /** Sets the sample that replaces a live text, such as the id of a client, in the examples. */
  learn(live: string, sample: string): void {
    this.samples.learn(live, sample);
  }

  /** Returns all recorded examples as JSON, in the order of the operation names. */
  recorded(): string {
    const sorted = [...this.#recorded].toSorted(([one], [other]) => (one < other ? -1 : 1));
    return `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`;
  }

  /**
   * Calls an operation by its `operationId`, and checks that the response fits the document.
   * Records the request and the response as the operation's example.
   */
  async call(name: string, asked: Asked = {}): Promise<Answer> {
    const placed = this.#placed.get(name);
    if (!placed) throw new Error(`the document has no operation ${name}`);
    const { parameters = {}, body } = asked;
    const wanted = { parameters, ...(body === undefined ? {} : { body }) };
    const sampled = this.samples.sampled(wanted) as typeof wanted;
    const documented = requestOf(placed.operation);
    const isDocumented = isDeepStrictEqual(sampled, documented);
    const live = (isDocumented ? this.samples.live(documented) : wanted) as typeof wanted;
    const answer = await this.#send(placed, { ...asked, ...live });
    expectDocumented(this.document, placed.operation, answer);
    const { others, texts } = this.#recorded.get(name) ?? {};
    const example = this.#exampleOf(sampled, answer);
    this.#recorded.set(name, { ...example, ...(others && { others }), ...(texts && { texts }) });
    return answer;
  }

  /**
   * Calls an operation again with other parameters, and records the values of the parameters that
   * its example lacks. If the response has another media type than the example, its text is
   * recorded too.
   */
  async also(name: string, asked: Asked): Promise<Answer> {
    const placed = this.#placed.get(name);
    const recorded = this.#recorded.get(name);
    if (!placed || !recorded) throw new Error(`there is no exchange of ${name}`);
    const answer = await this.#send(placed, asked);
    expectDocumented(this.document, placed.operation, answer);
    const sampled = this.samples.sampled(asked.parameters ?? {}) as Record<string, unknown>;
    const isNew = (parameter: string) => !Object.hasOwn(recorded.parameters ?? {}, parameter);
    const others = Object.entries(sampled).filter(([parameter]) => isNew(parameter));
    const type = typeOf(answer);
    const isText = type !== undefined && type !== recorded.answer.type;
    this.#recorded.set(name, {
      ...recorded,
      ...((recorded.others ?? others.length > 0) && {
        others: { ...recorded.others, ...Object.fromEntries(others) },
      }),
      ...((recorded.texts ?? isText) && {
        texts: { ...recorded.texts, ...(isText && { [type]: this.#textOf(type, answer.text) }) },
      }),
    });
    return answer;
  }

  /**
   * Returns the first lines of a CSV or NDJSON response (NDJSON has a JSON value on each line),
   * with sample values.
   */
  #textOf(type: string, text: string): string {
    if (type === 'text/csv') {
      const [head = '', ...lines] = text.split('\r\n');
      const names = head.split(',');
      const sampled = lines.slice(0, MOST_ITEMS).map((line) => {
        const cells = [...line.matchAll(/"((?:[^"]|"")*)"/g)].map(([, cell = '']) => cell);
        const shown = cells.map((cell, n) => String(this.samples.sampled(cell, names[n])));
        return shown.map((cell) => `"${cell}"`).join(',');
      });
      return [head, ...sampled].join('\r\n');
    }
    const lines = text.split('\n').filter((line) => line !== '');
    const shown = lines.slice(0, MOST_ITEMS).map((line) => this.samples.sampled(JSON.parse(line)));
    return shown.map((line) => `${JSON.stringify(line)}\n`).join('');
  }

  #send({ method, path, operation }: Placed, asked: Asked): Promise<Answer> {
    const { parameters = {}, body, from = this.browser, authorization, accept = '*/*' } = asked;
    const placeOf = (name: string) =>
      operation.parameters?.find((one) => one.name === name)?.in ?? 'header';
    const at = (place: string) =>
      Object.entries(parameters).filter(([name]) => placeOf(name) === place);
    const target = at('path').reduce(
      (text, [name, value]) => text.replace(`{${name}}`, encodeURIComponent(String(value))),
      path,
    );
    const query = new URLSearchParams();
    for (const [name, value] of at('query')) query.set(name, String(value));
    const [type] = Object.keys(operation.requestBody?.content ?? {});
    const isForm = type === FORM && body !== undefined;
    const client = authorization === undefined ? from : new Client(from.baseUrl);
    return client.send(method, query.size > 0 ? `${target}?${query.toString()}` : target, {
      address: newAddress(),
      headers: {
        accept,
        ...Object.fromEntries(at('header').map(([name, value]) => [name, String(value)])),
        ...(authorization === undefined ? {} : { authorization, origin: '' }),
        ...(body === undefined || type === undefined ? {} : { 'content-type': type }),
      },
      ...(body === undefined
        ? {}
        : { body: isForm ? new URLSearchParams(body as Record<string, string>).toString() : body }),
    });
  }

  #exampleOf(
    sampled: { readonly parameters: object; readonly body?: unknown },
    answer: Answer,
  ): OperationExample {
    const type = typeOf(answer);
    const isText = type?.startsWith('text/') === true && type !== 'text/html';
    const shown = isText ? answer.text : abridged(answer.json);
    const body = shown === undefined ? {} : { body: this.samples.sampled(shown) };
    return {
      ...(Object.keys(sampled.parameters).length > 0 && {
        parameters: sampled.parameters as Readonly<Record<string, unknown>>,
      }),
      ...('body' in sampled && { body: sampled.body }),
      answer: { status: answer.status, ...(type !== undefined && { type, ...body }) },
    };
  }
}

/**
 * Expects a successful status that the document lists for the operation, and a body that fits its
 * schema.
 */
function expectDocumented(
  document: OpenApiDocument,
  operation: OperationObject,
  answer: Answer,
): void {
  const { operationId: name } = operation;
  const response = operation.responses[answer.status];
  const isSuccess = answer.status < 400;
  expect([name, answer.status, isSuccess && response !== undefined], answer.text).toEqual([
    name,
    answer.status,
    true,
  ]);
  if (response === undefined || '$ref' in response) return;
  const type = typeOf(answer);
  if (type === undefined) return;
  const schema = response.content?.[type]?.schema;
  expect([name, type, schema !== undefined]).toEqual([name, type, true]);
  if (schema === undefined || answer.json === undefined) return;
  const parsed = validatorOf(schema, document).safeParse(answer.json);
  expect([name, parsed.error?.issues ?? []], answer.text).toEqual([name, []]);
}

/** Returns the request that the document shows as the example of an operation. */
function requestOf({ parameters = [], requestBody }: OperationObject) {
  const shown = parameters.filter((one) => 'example' in one);
  const [media] = Object.values(requestBody?.content ?? {});
  return {
    parameters: Object.fromEntries(shown.map(({ name, example }) => [name, example])),
    ...(media !== undefined && 'example' in media && { body: media.example }),
  };
}

/** Returns the media type of a response; undefined if the response has no body. */
function typeOf({ headers, status }: Answer): string | undefined {
  if (status === 204 || status === 304) return undefined;
  return headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
}

/**
 * Returns JSON in which lists of objects are shortened. The members `$ref` of SCIM are left out,
 * because tools take them for references of OpenAPI.
 */
function abridged(value: unknown): unknown {
  if (Array.isArray(value)) {
    const isLong = value.some((one) => typeof one === 'object');
    return (isLong ? value.slice(0, MOST_ITEMS) : value).map(abridged);
  }
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([key]) => key !== '$ref');
  return Object.fromEntries(kept.map(([key, one]) => [key, abridged(one)]));
}

/** Makes a validator from a JSON schema of the document. */
function validatorOf(schema: JsonSchema, { components }: OpenApiDocument): z.ZodType {
  const text = JSON.stringify({ ...schema, $defs: components.schemas });
  const local = text.replaceAll('#/components/schemas/', '#/$defs/');
  return z.fromJSONSchema(JSON.parse(local) as Parameters<typeof z.fromJSONSchema>[0]);
}
