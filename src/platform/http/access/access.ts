import type { IncomingMessage } from 'node:http';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { CallerFacts } from './access-policy.js';

/** A request the access guard let in. */
export interface AdmittedRequest extends Request {
  session?: unknown;
}

const CALLER = Symbol('caller');

/** Notes the caller of a request for the log. */
export function noteCaller(
  request: IncomingMessage & { [CALLER]?: CallerFacts },
  caller: CallerFacts,
) {
  request[CALLER] = caller;
}

/** Tells the caller of a request where a guard admitted one. */
export function callerOf(request: IncomingMessage & { [CALLER]?: CallerFacts }): CallerFacts {
  return request[CALLER] ?? NO_CALLER;
}
const NO_CALLER: CallerFacts = {};

/**
 * Gives a handler the caller that its `auth` rule admits: the session that was found, or the identity provider of a SCIM token.
 * It is undefined only where the rule makes a session optional.
 */
export const Caller = createParamDecorator(
  (_: unknown, context: ExecutionContext) =>
    context.switchToHttp().getRequest<AdmittedRequest>().session,
);
