import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { RoutePolicies } from '#platform/http/routing/route-policies.js';
import type { BodyRule } from '#platform/http/routing/route-policy.js';
import type { Request, Response } from 'express';
import { DomainError } from '#platform/errors/domain-error.js';
import { tooLarge } from './body-limits.js';
import { BODY_READERS, type BodyReader } from './body-type.js';
import { expectsContinue } from './expectation.js';
import { readBody } from './read-body.js';

/** Methods whose content means something (RFC 9110 §9.3). */
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/** How the one charset that is read may be written. */
const UTF8 = new Set(['utf-8', '"utf-8"', 'utf8', '"utf8"']);

/**
 * Global, and the last guard: refuses a body that is too large, of another type than the route reads, or malformed, and
 * reads it. Whoever an earlier guard refused has cost no memory. Nest's own parser is off, and no other is used: they
 * read a body that is too large to its very end before they say so. A guard and not an interceptor: those wrap every
 * request in streams, even where there is nothing to read.
 */
@Injectable()
export class BodyGuard implements CanActivate {
  constructor(private readonly routes: RoutePolicies) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    if (!METHODS_WITH_BODY.has(request.method) || !hasBody(request)) return true;
    return take(request, http.getResponse<Response>(), this.routes.ofContext(context).body);
  }
}

function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** @throws DomainError body_too_large, unsupported_media_type, malformed_body or invalid_request */
async function take(request: Request, response: Response, rule: BodyRule): Promise<true> {
  if (rule.kind === 'none') return true;
  const reader = BODY_READERS[rule.kind];
  checkType(request, reader);
  if (expectsContinue(request)) response.writeContinue();
  const body = await readBody(request, response, rule.max);
  if (body === 'too-large') throw tooLarge(rule.max);
  if (body === 'cut-off') throw new DomainError('malformed_body', 'The body ended too early.');
  if (body.length > 0) request.body = reader.parse(decode(body));
  return true;
}

/** Compressed bodies are refused: nobody needs them, bombs do. @throws DomainError unsupported_media_type */
function checkType({ headers }: Request, reader: BodyReader): void {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').split(';');
  if (!reader.accepts.test(type.trim())) {
    throw new DomainError('unsupported_media_type', `The body must be ${reader.name}.`);
  }
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

/** @throws DomainError malformed_body */
function decode(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new DomainError('malformed_body', 'The body is not UTF-8.');
  }
}

/** What a media type's parameter leaves the body to be: UTF-8, unless it is a charset of another name. */
function leavesUtf8(parameter: string): boolean {
  const [name = '', value = ''] = parameter.toLowerCase().split('=', 2);
  return name.trim() !== 'charset' || UTF8.has(value.trim());
}
