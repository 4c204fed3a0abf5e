import type { IncomingMessage } from 'node:http';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';
import type { AccessRequirement, CallerFacts } from './access-policy.js';

/** States what a route, or every route of a controller, asks of its caller. */
export const Access = Reflector.createDecorator<AccessRequirement>();

/** Open to everybody, and no cookie means anything here. */
export const Public = () => Access({ session: 'none', origin: 'any' });

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

/** The session the access guard found, in a handler's parameter; undefined only where it is optional. */
export const CurrentSession = createParamDecorator(
  (_: unknown, context: ExecutionContext) =>
    context.switchToHttp().getRequest<AdmittedRequest>().session,
);
