import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { ClientAddressResolver } from './client-address.js';
import { interactionIdOf } from './interaction-id.js';

/**
 * The name of the setting of the Express application whose value is its {@link
 * ClientAddressResolver}.
 */
export const CLIENT_ADDRESS = 'svc client address resolver';

/** Returns the IP address of a request's client; undefined after the client has disconnected. */
export function clientAddressOf(request: Request): string | undefined {
  const resolve = request.app.get(CLIENT_ADDRESS) as ClientAddressResolver;
  return resolve(request);
}

/**
 * Gives a handler the interaction id of its request, the client's IP address and the user agent,
 * for audit rows.
 */
export const ClientOrigin = createParamDecorator((_: unknown, context: ExecutionContext) =>
  originOf(context.switchToHttp().getRequest<Request>()),
);

/**
 * Returns the interaction id of a request, the client's IP address, and the first 512 characters of
 * the user agent, for audit rows.
 */
export function originOf(request: Request) {
  return {
    requestId: interactionIdOf(request),
    ip: clientAddressOf(request),
    userAgent: request.headers['user-agent']?.slice(0, 512),
  };
}
