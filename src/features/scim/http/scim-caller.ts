import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { ScimActor } from '#domain/directory/scim-actor.js';
import type { Provisioner } from '#domain/sessions/session-access-policy.service.js';
import type { AdmittedRequest } from '#platform/http/access/access.js';
import type { PolicyChanges } from '#platform/http/routing/route-policy.js';
import { KIB } from '#platform/http/routing/route.js';
import { originOf } from '#platform/http/request/client-origin.js';

/** The rules that all routes of SCIM share. */
export const SCIM = {
  tier: 'general',
  body: { kind: 'scim', max: 64 * KIB },
  audience: 'api',
  errors: 'scim',
  auth: { session: 'provisioner', origin: 'any' },
} as const satisfies PolicyChanges;

/** The identity provider that asks, in a handler's parameter: the access guard admitted its token. */
export const Caller = createParamDecorator((_: unknown, context: ExecutionContext): ScimActor => {
  const request = context.switchToHttp().getRequest<AdmittedRequest>();
  return { ...(request.session as Provisioner), origin: originOf(request) };
});
