import type { Request, Response } from 'express';
import { DomainError } from '#platform/errors/domain-error.js';
import type { BodyRule } from '#platform/http/routing/route-policy.js';
import { BODY_READERS, type BodyReader } from './body-readers.js';
import { expectsContinue } from './expectation.js';
import { readBody } from './read-body.js';

/**
 * The methods whose content has a meaning (RFC 9110 §9.3). The body of any other request is not
 * read.
 */
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/** The spellings of UTF-8, which is the only charset that a body may have. */
const UTF8 = new Set(['utf-8', '"utf-8"', 'utf8', '"utf8"']);

const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Refuses a body whose `Content-Length` exceeds the limit of its route, before the caller is looked
 * up.
 *
 * @throws DomainError body_too_large for such a body
 */
export function assertDeclaredSize({ headers }: Request, { max }: BodyRule): void {
  const declared = headers['content-length'];
  if (declared !== undefined && Number(declared) > max) throw tooLarge(max);
}

/**
 * Returns true if a request has a body that its route reads. A chunked body can turn out to be
 * empty.
 */
export function hasBodyFor({ method, headers }: Request, { kind }: BodyRule): boolean {
  const isSent =
    headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  return isSent && kind !== 'none' && METHODS_WITH_BODY.has(method);
}

/**
 * Reads the body of a request into `request.body`. The body parsers of Nest and Express are not
 * used. They would read a body that is too large to its end before they refuse it.
 *
 * @throws DomainError body_too_large, unsupported_media_type, malformed_body or invalid_request
 */
export async function parseBody(
  request: Request,
  response: Response,
  { kind, max }: BodyRule,
): Promise<void> {
  if (kind === 'none') return;
  const reader = BODY_READERS[kind === 'raw' ? 'json' : kind];
  const mayBeEmpty = isUntypedStream(request);
  if (!mayBeEmpty) assertType(request, reader);
  if (expectsContinue(request)) response.writeContinue();
  const body = await readBody(request, response, mayBeEmpty ? 0 : max);
  if (body === 'too-large') throw mayBeEmpty ? wrongType(reader) : tooLarge(max);
  if (body === 'cut-off') throw new DomainError('malformed_body', 'The body ended too early.');
  if (body.length === 0) return;
  request.body = kind === 'raw' ? body : reader.parse(decode(body));
}

/**
 * Returns true for a chunked body without a media type. Some clients send a chunked body of zero
 * bytes if they have no body. So the missing type is refused only if a byte arrives.
 */
function isUntypedStream({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined && headers['content-type'] === undefined;
}

function tooLarge(limit: number): DomainError {
  return new DomainError('body_too_large', `The body may have at most ${limit} bytes here.`);
}

function wrongType({ name }: BodyReader): DomainError {
  return new DomainError('unsupported_media_type', `The body must be ${name}.`);
}

/**
 * Checks the media type of a body. It refuses compressed bodies, which no client needs and which
 * can expand to any size.
 * @throws DomainError unsupported_media_type for another media type, a compressed body, or a
 *   charset other than UTF-8
 */
function assertType({ headers }: Request, reader: BodyReader): void {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').split(';');
  if (!reader.accepts.test(type.trim())) throw wrongType(reader);
  const isPlain =
    (headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity' &&
    (headers['transfer-encoding'] ?? 'chunked').toLowerCase() === 'chunked';
  if (!isPlain || !parameters.every(leavesUtf8)) {
    throw new DomainError(
      'unsupported_media_type',
      'The body must be plain UTF-8, without content coding.',
    );
  }
}

/**
 * Decodes a body as UTF-8.
 * @throws DomainError malformed_body for bytes that are not UTF-8
 */
function decode(body: Buffer): string {
  try {
    return STRICT_UTF8.decode(body);
  } catch {
    throw new DomainError('malformed_body', 'The body is not UTF-8.');
  }
}

/**
 * Returns false for a parameter of `Content-Type` that sets a charset other than UTF-8, and true
 * for any other parameter.
 */
function leavesUtf8(parameter: string): boolean {
  const [name = '', value = ''] = parameter.toLowerCase().split('=', 2);
  return name.trim() !== 'charset' || UTF8.has(value.trim());
}
