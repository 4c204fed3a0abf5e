import { z } from 'zod';
import { targetKind, type TargetRef } from '#domain/admin/access-rules/target.js';
import { DomainError } from '#platform/errors/domain-error.js';

/**
 * The path parameters of the page of a target. They are checked later, so that an unknown kind or
 * id gets 404, and not 400.
 */
export const TARGET_PAGE = z.object({ kind: z.string(), id: z.string() });
/** The parsed path parameters of the page of a target. They may name no target. */
export type TargetPath = z.output<typeof TARGET_PAGE>;

/**
 * Returns the target that a path names.
 *
 * @throws DomainError not_found for an unknown kind
 */
export function pageTarget({ kind, id }: TargetPath): TargetRef {
  const known = targetKind(kind);
  if (known) return { kind: known, id };
  throw new DomainError('not_found', 'Your organization has no such target.');
}

/** Returns the path of the page of a target. */
export function targetAddress({ kind, id }: TargetRef): string {
  return `/admin/access/${kind}/${encodeURIComponent(id)}`;
}
