import type { ScimRefusal } from '#domain/directory/scim-tokens/scim-refusals.repository.js';
import type { DomainError } from '#platform/errors/domain-error.js';
import { isUuid } from '#platform/text/single-line.js';

/**
 * The statuses of a write that was refused. A client that is not admitted has no token to record it
 * under.
 */
const REFUSED: ReadonlySet<number> = new Set([400, 404, 409, 412, 413, 415]);

/**
 * Describes a refused write for the record; undefined for an error that is no refusal. A DELETE of
 * what does not exist is none, because its wish is fulfilled.
 *
 * @param path the path below `/scim/v2`
 */
export function refusalOf(
  method: string,
  path: string,
  { status, code, detail }: DomainError,
): ScimRefusal | undefined {
  if (!REFUSED.has(status) || (method === 'DELETE' && status === 404)) return undefined;
  const [, name = '', id = ''] = path.split('/');
  const isKnown = status !== 404 && isUuid(id);
  return {
    resourceType: TYPES[name.toLowerCase()] ?? 'Bulk',
    resourceId: isKnown ? id.toLowerCase() : '',
    reason: code,
    method,
    detail,
  };
}

const TYPES: Readonly<Record<string, string | undefined>> = { users: 'User', groups: 'Group' };
