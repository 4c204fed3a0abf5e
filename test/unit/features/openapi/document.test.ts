import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { API } from '../../../../src/features/openapi/api-groups.js';
import type {
  JsonSchema,
  OpenApiDocument,
  OperationObject,
} from '../../../../src/platform/http/openapi/document-types.js';
import { previewDocument } from '../../../support/preview-document.js';

/** The file that names every operation that was ever released, with its method and path. */
const NAMES = 'test/vectors/operation-ids.txt';

/** Operations without an example of their response: its body is bytes or is not JSON. */
const WITHOUT_EXAMPLE = new Set(['completeGitHubLink', 'getRevokedSignatures']);

let document: OpenApiDocument;

beforeAll(async () => {
  document = await previewDocument();
});

/** Lists the operations of a document, each with its method and path. */
function operationsOf({ paths }: OpenApiDocument): [string, OperationObject][] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, OperationObject] => [
      `${method.toUpperCase()} ${path}`,
      operation,
    ]),
  );
}

/** Lists the parts of an operation that have no description. */
function undescribed([place, operation]: [string, OperationObject]): string[] {
  const parameters = (operation.parameters ?? [])
    .filter(({ description = '' }) => description === '')
    .map(({ name }) => `${place}: the parameter ${name}`);
  const { requestBody, responses } = operation;
  const answers = Object.entries(responses).flatMap(([status, response]) =>
    '$ref' in response ? [] : [[status, response] as const],
  );
  return [
    ...parameters,
    ...(requestBody === undefined ? [] : ofContent(`${place}: the body`, requestBody)),
    ...answers.flatMap(([status, response]) => ofContent(`${place}: ${status}`, response)),
  ];
}

function ofContent(
  place: string,
  { description, content = {} }: { readonly description: string; readonly content?: object },
): string[] {
  const schemas = Object.values(content) as { readonly schema: JsonSchema }[];
  const members = schemas.flatMap(({ schema }) => undescribedMembers(place, schema));
  const isMissing = description === '' || description === 'The body.';
  return [...(isMissing ? [place] : []), ...members];
}

/**
 * Lists the members of a schema that have no description, also the members of its nested schemas.
 */
function undescribedMembers(place: string, schema: JsonSchema): string[] {
  const {
    properties = {},
    items,
    anyOf,
    oneOf,
    additionalProperties,
  } = schema as {
    readonly properties?: Readonly<Record<string, JsonSchema>>;
    readonly items?: JsonSchema;
    readonly anyOf?: readonly JsonSchema[];
    readonly oneOf?: readonly JsonSchema[];
    readonly additionalProperties?: JsonSchema | boolean;
  };
  const members = Object.entries(properties).flatMap(([name, member]) => [
    ...(isDescribed(member) ? [] : [`${place}.${name}`]),
    ...undescribedMembers(`${place}.${name}`, member),
  ]);
  const rest = typeof additionalProperties === 'object' ? [additionalProperties] : [];
  const parts = [...(items ? [items] : []), ...(anyOf ?? []), ...(oneOf ?? []), ...rest];
  return [...members, ...parts.flatMap((part) => undescribedMembers(place, part))];
}

/**
 * Returns true if a schema has a description or is a reference. Another test checks the description
 * of each schema that can be referred to.
 */
function isDescribed({ description = '', $ref }: JsonSchema): boolean {
  return description !== '' || $ref !== undefined;
}

/** Lists the parts of an operation that lack an example. */
function withoutExample([place, operation]: [string, OperationObject]): string[] {
  const { operationId, parameters = [], requestBody, responses } = operation;
  const missing = parameters
    .filter((one) => one.in === 'path' && !('example' in one))
    .map(({ name }) => `${place}: the parameter ${name}`);
  const isOptional = requestBody?.required !== true;
  const [body] = Object.values(requestBody?.content ?? {});
  if (!isOptional && body && !('example' in body)) missing.push(`${place}: the body`);
  const isShown = Object.values(responses).some(
    (response) =>
      !('$ref' in response) &&
      Object.values(response.content ?? {}).some((one) => 'example' in one),
  );
  const hasBody = Object.values(responses).some(
    (response) => !('$ref' in response) && response.content !== undefined,
  );
  if (hasBody && !isShown && !WITHOUT_EXAMPLE.has(operationId)) missing.push(`${place}: an answer`);
  return missing;
}

describe('the names of the operations', () => {
  it('are those that were released, and each new one is in the list', () => {
    const released = readFileSync(NAMES, 'utf8').trim().split('\n');
    const named = operationsOf(document).map(
      ([place, { operationId }]) => `${place} ${operationId || '(its @Route states no operation)'}`,
    );
    expect(named.toSorted()).toEqual(released);
  });

  it('are a verb and a noun in camel case, each once', () => {
    const names = operationsOf(document).map(([, { operationId }]) => operationId);
    expect(names.filter((name) => !/^[a-z]+(?:[A-Z][a-z0-9]+)+$/.test(name))).toEqual([]);
    expect(names.filter((name, n) => names.indexOf(name) !== n)).toEqual([]);
  });
});

describe('the parts of the document', () => {
  it('have a description: each parameter, each body and each member of a body', () => {
    const { schemas } = document.components;
    const components = Object.entries(schemas).flatMap(([name, schema]) => [
      ...(isDescribed(schema) ? [] : [name]),
      ...undescribedMembers(name, schema),
    ]);
    expect([...operationsOf(document).flatMap(undescribed), ...components]).toEqual([]);
  });

  it('have an example: each parameter of a path, each required body, each answer with a body', () => {
    expect(operationsOf(document).flatMap(withoutExample)).toEqual([]);
  });

  it('show no secret in an example: each long text that looks random is a public key', async () => {
    const text = JSON.stringify(await API.examples());
    const random =
      /(?=[^"]*[a-z])(?=[^"]*[A-Z])(?=[^"]*\d)(?<=[" ])[A-Za-z0-9_+/=.~-]{24,}(?=[" ])/g;
    const found = (text.match(random) ?? []).filter((one) => !one.startsWith('019b0000-'));
    expect([...new Set(found)]).toEqual([expect.stringMatching(/^AAAAC3NzaC1lZDI1NTE5/)]);
  });

  it('show no example of an operation that does not exist', async () => {
    const names = operationsOf(document).map(([, { operationId }]) => operationId);
    const examples = Object.keys(await API.examples());
    expect(examples.filter((name) => !names.includes(name))).toEqual([]);
  });
});

describe('the errors of the document', () => {
  it('have one response for each status and format, and one schema for each format', () => {
    const { schemas, responses } = document.components;
    const formats = ['', 'OAuth', 'Scim', 'Page', 'PageOrProblem'];
    const words = Object.keys(responses).map((name) =>
      formats.reduce(
        (rest, format) =>
          format !== '' && name.startsWith(format) ? name.slice(format.length) : rest,
        name,
      ),
    );
    expect(words.filter((word) => !/^[A-Z][A-Za-z]+$/.test(word))).toEqual([]);
    expect(
      Object.keys(schemas)
        .filter((name) => /Problem|Error/.test(name))
        .toSorted(),
    ).toEqual(['OAuthError', 'Problem', 'ScimError']);
  });

  it('name the codes of each operation by status, and no name of a component has one', () => {
    for (const [place, operation] of operationsOf(document)) {
      const statuses = Object.keys(operation.responses).filter((status) => Number(status) >= 400);
      expect([place, Object.keys(operation['x-error-codes'])]).toEqual([place, statuses]);
    }
    const { schemas, responses } = document.components;
    const names = [...Object.keys(schemas), ...Object.keys(responses)];
    expect(names.filter((name) => /_|\./.test(name))).toEqual([]);
  });
});
