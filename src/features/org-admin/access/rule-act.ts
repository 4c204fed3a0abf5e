import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { RuleAct } from '#domain/admin/access-rules/rule-audit.js';
import { targetKind, type TargetRef } from '#domain/admin/access-rules/target.js';
import { adminOf } from '#domain/directory/members.service.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { AdmittedRequest } from '#platform/http/access/caller.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { assertNames } from '#platform/http/request/entity-tag.js';
import { targetTag } from './access.schemas.js';

/**
 * Gives a handler the facts of a request that changes a target: the admin, the origin (for the
 * audit log) and the condition `If-Match`. The target is changed only if `If-Match` names its
 * present version. A new target needs no version.
 */
export const OnTarget = createParamDecorator((_: unknown, context: ExecutionContext): RuleAct => {
  const request = context.switchToHttp().getRequest<AdmittedRequest>();
  const ifMatch = request.headers['if-match'];
  return {
    admin: adminOf(request.session as VerifiedSession), // the route admits no other caller
    origin: originOf(request),
    check: (target) => assertNames(ifMatch, targetTag(target)),
  };
});

/**
 * Returns the target that a path or query names.
 *
 * @throws DomainError not_found for an unknown kind
 */
export function namedTarget({
  kind,
  id,
}: {
  readonly kind: string;
  readonly id: string;
}): TargetRef {
  const known = targetKind(kind);
  if (known === undefined) throw new DomainError('not_found', 'There is no such kind of target.');
  return { kind: known, id };
}
