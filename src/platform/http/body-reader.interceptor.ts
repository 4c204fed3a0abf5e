import {
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import bodyParser from 'body-parser';
import type { Request, Response } from 'express';
import type { Observable } from 'rxjs';
import { DomainError } from '#platform/errors/domain-error.js';
import { BODY_LIMITS, BodyLimit, FormBody, type BodyKind } from './body-limits.js';

/** Methods whose content means something (RFC 9110 §9.3). */
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

const isJson = (type: string) => /^application\/(?:[\w.-]+\+)?json$/i.test(type);
const isForm = (type: string) => /^application\/x-www-form-urlencoded$/i.test(type);

/** The parsers of each kind of route, made once. Compressed bodies are refused: nobody needs them, bombs do. */
const PARSERS = {
  default: parsersFor(BODY_LIMITS.default),
  credentials: parsersFor(BODY_LIMITS.credentials),
  webauthn: parsersFor(BODY_LIMITS.webauthn),
} satisfies Record<BodyKind, unknown>;

function parsersFor(limit: number) {
  const options = { limit, inflate: false, type: () => true };
  return {
    json: bodyParser.json(options),
    form: bodyParser.urlencoded({ ...options, extended: false }),
  };
}

/**
 * Reads the body of a request after the guards let it in, so that whoever is refused costs no memory, and before the
 * handler's parameters are made. Nest's own parser is off.
 */
@Injectable()
export class BodyReader implements NestInterceptor {
  constructor(private readonly reflector: Reflector) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    if (METHODS_WITH_BODY.has(request.method) && hasBody(request)) {
      const targets = [context.getHandler(), context.getClass()] as const;
      const kind = this.reflector.getAllAndOverride(BodyLimit, [...targets]) ?? 'default';
      const form = this.reflector.getAllAndOverride(FormBody, [...targets]) ?? false;
      await readBody(request, http.getResponse<Response>(), kind, form);
    }
    return next.handle();
  }
}

function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** @throws DomainError body_too_large, unsupported_media_type or malformed_body */
async function readBody(
  request: Request,
  response: Response,
  kind: BodyKind,
  form: boolean,
): Promise<void> {
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim() ?? '';
  if (!(form ? isForm(type) : isJson(type))) {
    const expected = form ? 'application/x-www-form-urlencoded' : 'application/json';
    throw new DomainError('unsupported_media_type', `The body must be ${expected}.`);
  }
  const parse = form ? PARSERS[kind].form : PARSERS[kind].json;
  const error = await new Promise<unknown>((resolve) => {
    parse(request, response, resolve);
  });
  if (error !== undefined && error !== null) throw bodyError(error, kind);
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
    return new DomainError('malformed_body', 'The body cannot be read as what it says it is.', {
      cause: error,
    });
  }
  return new DomainError('internal', 'The body could not be read.', { cause: error });
}
