import { CATALOGUE, type ErrorCode } from '#platform/errors/catalogue.js';
import { EXPLANATIONS } from '#platform/errors/explanations.js';
import type { OpenApiDocument, OperationObject } from '#platform/http/openapi/document-types.js';

/** A code of the error catalogue, as the list of errors shows it. */
interface ListedError {
  readonly code: ErrorCode;
  readonly status: number;
  readonly title: string;
}

/** The data that the page of an error code shows. */
interface ErrorPage extends ListedError {
  readonly cause: string;
  readonly remedy: string;
  /** An example of the error in each format, with the routes that use the format. */
  readonly formats: readonly { readonly name: string; readonly value: string }[];
  /** The operations that can answer with the code. */
  readonly operations: readonly string[];
}

/** Lists every error code, sorted by HTTP status. */
export function errorList(): ListedError[] {
  const codes = Object.keys(CATALOGUE) as ErrorCode[];
  return codes
    .map((code) => ({ code, status: CATALOGUE[code].status, title: CATALOGUE[code].title }))
    .toSorted((one, other) => one.status - other.status);
}

/** Makes the page of an error code; undefined for a text that is no code. */
export function errorPageOf(code: string, document: OpenApiDocument): ErrorPage | undefined {
  if (!isCode(code)) return undefined;
  const { status, title, oauth, ...row } = CATALOGUE[code];
  const scimType = 'scimType' in row ? `scimType ${row.scimType}` : `status ${status}`;
  const operations = operationsWith(code, document);
  return {
    code,
    status,
    title,
    ...EXPLANATIONS[code],
    formats: [
      { name: 'Problem document (RFC 9457), on /v1 and /api/v1', value: `code ${code}` },
      { name: 'OAuth (RFC 6749), on /oauth', value: `error ${oauth}` },
      { name: 'SCIM (RFC 7644), on /scim/v2', value: scimType },
      { name: 'Page, for browsers', value: title },
    ],
    operations,
  };
}

function isCode(text: string): text is ErrorCode {
  return Object.hasOwn(CATALOGUE, text);
}

function operationsWith(code: ErrorCode, { paths }: OpenApiDocument): string[] {
  const has = (operation: OperationObject): boolean =>
    Object.values(operation['x-error-codes']).some((codes) => codes.includes(code));
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => has(operation))
      .map(([method]) => `${method.toUpperCase()} ${path}`),
  );
}
