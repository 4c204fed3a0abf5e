import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * One kind of response that the service gave in a test, as `recorder.js` wrote it. Each process
 * records each kind only once.
 */
export interface Met {
  readonly method: string;
  readonly head: boolean;
  /**
   * The template of the route, such as `/v1/keys/:id`. It is null if the request was answered
   * before it reached a route.
   */
  readonly template: string | null;
  readonly path: string | null;
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
}

interface Response {
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, object>>;
}

/** An operation of the OpenAPI document: its responses and its error codes, both by status. */
interface Operation {
  readonly responses: Readonly<Record<string, Response>>;
  readonly 'x-error-codes'?: Readonly<Record<string, readonly string[]>>;
}

/** The part of the OpenAPI document that the comparison reads. */
export interface Described {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Response>> };
}

/**
 * Lists the kinds of responses that tests got and that the document does not have. An entry is, for
 * example, `GET /v1/keys 418` with the error code, or `GET /v1/keys 200 as "text/plain"`.
 */
export function undocumented(met: readonly Met[], document: Described): string[] {
  const lines = met.flatMap((one) => {
    const where = placeOf(one, document);
    if (where === undefined) return [];
    const response = where.responses[String(one.status)];
    if (response === undefined) {
      return isOfMethod(one) ? [] : [`${where.label} ${one.status} ${one.code ?? ''}`.trim()];
    }
    const { content } = resolved(response, document);
    const isKnownType = content === undefined ? one.type === '' : one.type in content;
    const hasBody = !one.head && one.status !== 304;
    if (hasBody && !isKnownType) return [`${where.label} ${one.status} as "${one.type}"`];
    // The library of the OAuth endpoints has error codes of its own, which the document does not
    // list.
    const isOurs = one.type === 'application/problem+json' || one.type === 'application/scim+json';
    const isKnownCode = one.code === null || where.codes[one.status]?.includes(one.code) === true;
    return isOurs && !isKnownCode ? [`${where.label} ${one.status} ${one.code}`] : [];
  });
  return [...new Set(lines)].toSorted();
}

/** Lists the kinds of responses that are in the document and that no test got. */
export function unmet(met: readonly Met[], document: Described): string[] {
  const seen = new Set(
    met.flatMap((one) => {
      const where = one.head ? undefined : placeOf(one, document);
      return where ? [`${where.label} ${one.status} ${one.type}`.trim()] : [];
    }),
  );
  return documentedKinds(document).filter((kind) => !seen.has(kind));
}

/** Lists every documented kind of response: `GET /v1/keys 200 application/json`. */
export function documentedKinds(document: Described): string[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { responses }]) =>
      Object.entries(responses).flatMap(([status, response]) => {
        const types = Object.keys(resolved(response, document).content ?? { '': {} });
        return types.map((type) => `${method.toUpperCase()} ${path} ${status} ${type}`.trim());
      }),
    ),
  );
}

/** Reads the kinds of responses that all processes of a run have recorded. */
export function readTraffic(folder: string): Met[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.ndjson'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').trim().split('\n'))
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Met);
}

/**
 * Reads the OpenAPI document of an application that the test run started; undefined if it started
 * none.
 */
export function readDocument(folder: string): Described | undefined {
  const file = join(folder, 'document.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Described) : undefined;
}

/**
 * Returns true for the response to a method that the path does not have. Also returns true for the
 * response to HEAD if GET on the same path changes data. The document describes both responses
 * once, for all paths.
 */
function isOfMethod({ status, head }: Met): boolean {
  return status === 405 || (head && status === 404);
}

interface Place {
  readonly label: string;
  readonly responses: Operation['responses'];
  readonly codes: Readonly<Record<string, readonly string[]>>;
}

/**
 * Finds the operation in the document to which a response belongs; undefined if the document does
 * not have its path or method.
 */
function placeOf(one: Met, { paths }: Described): Place | undefined {
  const path =
    one.template === null
      ? pathLike(one.path ?? '', Object.keys(paths))
      : one.template.replaceAll(/:(\w+)/g, '{$1}');
  const operation = path === undefined ? undefined : paths[path]?.[one.method.toLowerCase()];
  if (operation === undefined) return undefined;
  const { responses, 'x-error-codes': codes = {} } = operation;
  return { label: `${one.method} ${path}`, responses, codes };
}

/**
 * Finds the path of the document that matches a request's path. If several match, the one with the
 * fewest parameters is returned.
 */
function pathLike(path: string, known: readonly string[]): string | undefined {
  const segments = path.toLowerCase().replace(/\/$/, '').split('/');
  const fits = known.filter((one) => {
    const wanted = one.toLowerCase().split('/');
    return (
      wanted.length === segments.length &&
      wanted.every((part, i) => (part.startsWith('{') ? segments[i] !== '' : part === segments[i]))
    );
  });
  const parameters = (one: string) => one.split('{').length;
  return fits.toSorted((a, b) => parameters(a) - parameters(b))[0];
}

function resolved(response: Response, { components }: Described): Response {
  if (response.$ref === undefined) return response;
  return components.responses[response.$ref.slice('#/components/responses/'.length)] ?? {};
}
