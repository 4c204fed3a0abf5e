import type { ScimRefusal } from '#domain/directory/scim-tokens/scim-refusals.repository.js';
import type { DomainError } from '#platform/errors/domain-error.js';
import { isUuid } from '#platform/text/single-line.js';

/**
 * The statuses of writes that are recorded as refused. 401 is not among them: without a valid
 * token, it is not known which organization should see the record.
 */
const REFUSED: ReadonlySet<number> = new Set([400, 404, 409, 412, 413, 415]);

/**
 * Describes a refused write for the admins of the organization; undefined for an error that is no
 * refusal. A DELETE of a resource that does not exist is no refusal, because the resource is gone,
 * as the client wants.
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
