import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { ClientAddressResolver } from './client-address.js';
import { interactionIdOf } from './interaction-id.js';

/** The name under which the application keeps its address resolver. */
export const CLIENT_ADDRESS = 'svc client address resolver';

/** The address of a request's client; undefined when it is gone with its connection. */
export function clientAddressOf(request: Request): string | undefined {
  const resolve = request.app.get(CLIENT_ADDRESS) as ClientAddressResolver;
  return resolve(request);
}

/** Where a request came from, as audit rows keep it. */
export const ClientOrigin = createParamDecorator((_: unknown, context: ExecutionContext) =>
  originOf(context.switchToHttp().getRequest<Request>()),
);

/** Where a request came from, as audit rows keep it. */
export function originOf(request: Request) {
  return {
    requestId: interactionIdOf(request),
    ip: clientAddressOf(request),
    userAgent: request.headers['user-agent']?.slice(0, 512),
  };
}
