import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { Member } from '#domain/directory/users.repository.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { namesTag } from '#platform/http/request/entity-tag.js';

/** Refuses an act on a member that has changed since the admin read it. */
export type MemberCheck = (member: Member) => void;

/** Returns the weak entity tag of a member (RFC 9110 §8.8.3): it changes with the account, the role, the state and the keys. */
export function memberTag({ revision }: Member): string {
  return `W/"${revision}"`;
}

/** Gives a handler the check of `If-Match` (RFC 9110 §13.1.1); undefined where the request has no such condition. */
export const IfMatch = createParamDecorator(
  (_: unknown, context: ExecutionContext): MemberCheck | undefined => {
    const condition = context.switchToHttp().getRequest<Request>().headers['if-match'];
    if (condition === undefined) return undefined;
    return (member) => {
      if (namesTag(condition, memberTag(member))) return;
      throw new DomainError(
        'precondition_failed',
        'This member has changed since you opened the page. Load it again, then decide.',
      );
    };
  },
);
