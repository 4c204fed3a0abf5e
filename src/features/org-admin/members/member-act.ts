import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { adminOf, type MemberAct } from '#domain/directory/members.service.js';
import type { Member } from '#domain/directory/users.repository.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { AdmittedRequest } from '#platform/http/access/caller.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { namesTag } from '#platform/http/request/entity-tag.js';

/**
 * Returns the facts of a request that changes the member with this id: the admin, the origin (for
 * the audit log) and the condition `If-Match` of the request.
 */
export type ActOn = (memberId: string) => MemberAct;

/**
 * Returns the weak entity tag of a member (RFC 9110 §8.8.3). It changes if the account, the role,
 * the state or the keys of the member change.
 */
export function memberTag({ revision }: Member): string {
  return `W/"${revision}"`;
}

/**
 * Gives a handler the function that returns the facts of a request that changes a member. With
 * `If-Match`, the change is made only if the member has the state that the tag names.
 */
export const Act = createParamDecorator((_: unknown, context: ExecutionContext): ActOn => {
  const request = context.switchToHttp().getRequest<AdmittedRequest>();
  const admin = adminOf(request.session as VerifiedSession); // the route admits no other caller
  const act = { admin, origin: originOf(request), check: checkOf(request.headers['if-match']) };
  return (memberId) => ({ ...act, memberId });
});

/**
 * Returns the function that checks the condition `If-Match` (RFC 9110 §13.1.1) on a member;
 * undefined if the request has no condition.
 */
function checkOf(condition: string | undefined): MemberAct['check'] {
  if (condition === undefined) return undefined;
  return (member) => {
    if (namesTag(condition, memberTag(member))) return;
    throw new DomainError(
      'precondition_failed',
      'This member has changed since you opened the page. Load it again, then decide.',
    );
  };
}
