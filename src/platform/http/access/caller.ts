import type { IncomingMessage } from 'node:http';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { BegunLookUp, CallerFacts } from './access-policy.js';
import type { DeferredLimit, Unconfirmed } from './unconfirmed.js';

/** A request that the route guard has admitted, with its session, if there is one. */
export interface AdmittedRequest extends Request {
  session?: unknown;
  /**
   * The look-up of the caller that began before the rate limit was decided; undefined if none did.
   */
  begun?: BegunLookUp | undefined;
  /** The rate limit, if the database has not decided about it before the guards. */
  limit?: DeferredLimit | undefined;
  /** The request before its limit and its caller are decided; undefined if they are. */
  unconfirmed?: Unconfirmed | undefined;
}

/**
 * Gives a handler the caller of the request: its session, or the identity provider, OAuth client or
 * program whose token was accepted. The caller is undefined if the rule requires no session and the
 * request has none.
 */
export const Caller = createParamDecorator(
  (_: unknown, context: ExecutionContext) =>
    context.switchToHttp().getRequest<AdmittedRequest>().session,
);

/**
 * Gives a handler its {@link Unconfirmed} request; undefined if the limit and the caller are
 * already decided.
 */
export const UnconfirmedRequest = createParamDecorator(
  (_: unknown, context: ExecutionContext) =>
    context.switchToHttp().getRequest<AdmittedRequest>().unconfirmed,
);

const CALLER = Symbol('caller');
type Identified = IncomingMessage & { [CALLER]?: CallerFacts };

/** Records the caller on its request, for the log. */
export function noteCaller(request: Identified, caller: CallerFacts): void {
  request[CALLER] = caller;
}

/**
 * Returns the caller that was recorded for a request, for the log; an empty object if there is
 * none.
 */
export function callerOf(request: Identified): CallerFacts {
  return request[CALLER] ?? NO_CALLER;
}
const NO_CALLER: CallerFacts = {};
