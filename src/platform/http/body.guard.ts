import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import bodyParser from 'body-parser';
import type { Request, Response } from 'express';
import { DomainError } from '#platform/errors/domain-error.js';
import { BODY_LIMITS, BodyLimit, type BodyKind } from './body-limits.js';

/** Methods whose content means something (RFC 9110 §9.3). */
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

const isJson = (type: string) => /^application\/(?:[\w.-]+\+)?json$/i.test(type);

/** The parsers of each kind of route, made once. Compressed bodies are refused: nobody needs them, bombs do. */
const PARSERS = {
  default: parserFor(BODY_LIMITS.default),
  credentials: parserFor(BODY_LIMITS.credentials),
  webauthn: parserFor(BODY_LIMITS.webauthn),
} satisfies Record<BodyKind, unknown>;

function parserFor(limit: number) {
  return bodyParser.json({ limit, inflate: false, type: () => true });
}

/**
 * Global, and the last guard: refuses a body that is too large, of another type than the route reads, or malformed, and
 * reads it. Whoever an earlier guard refused has cost no memory. Nest's own parser is off. A guard and not an
 * interceptor: those wrap every request in streams, even where there is nothing to read.
 */
@Injectable()
export class BodyGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    if (!METHODS_WITH_BODY.has(request.method) || !hasBody(request)) return true;
    const targets = [context.getHandler(), context.getClass()];
    const kind = this.reflector.getAllAndOverride(BodyLimit, targets) ?? 'default';
    return readBody(request, http.getResponse<Response>(), kind);
  }
}

function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** @throws DomainError body_too_large, unsupported_media_type or malformed_body */
async function readBody(request: Request, response: Response, kind: BodyKind): Promise<true> {
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim() ?? '';
  if (!isJson(type)) {
    throw new DomainError('unsupported_media_type', 'The body must be application/json.');
  }
  const parse = PARSERS[kind];
  const error = await new Promise<unknown>((resolve) => {
    parse(request, response, resolve);
  });
  if (error !== undefined && error !== null) throw bodyError(error, kind);
  return true;
}

function bodyError(error: unknown, kind: BodyKind): DomainError {
  const status = (error as { status?: number }).status;
  if (status === 413) {
    return new DomainError(
      'body_too_large',
      `The body may have at most ${BODY_LIMITS[kind]} bytes here.`,
    );
  }
  if (status === 415) {
    return new DomainError(
      'unsupported_media_type',
      'The body must be plain UTF-8, without content coding.',
    );
  }
  if (status !== undefined && status < 500) {
    // Without its cause: a parser quotes what it stumbled over, and bodies carry secrets.
    return new DomainError('malformed_body', 'The body cannot be read as what it says it is.');
  }
  return new DomainError('internal', 'The body could not be read.', { cause: error });
}
