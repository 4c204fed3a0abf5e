import { Logger } from '@nestjs/common';
import type { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { toSingleLine } from '#platform/text/single-line.js';
import {
  countRefusals,
  type CountedRefusal,
  type RefusedActor,
  type ScimRefusal,
} from './scim-refusals.repository.js';

/** The most characters of the error detail that is stored with a refusal. */
const LONGEST_DETAIL = 256;

const security = new Logger('security');

/**
 * Records the writes of an identity provider that were refused, for the audit log, the alerts and
 * the page of the SCIM tokens. It runs after the write. An error of this function is only logged,
 * because the client must get the response to its write.
 */
export async function recordScimRefusals(
  tenantWork: TenantWork,
  actor: RefusedActor,
  refusals: readonly ScimRefusal[],
): Promise<void> {
  if (refusals.length === 0) return;
  const { orgId, tokenId } = actor;
  try {
    const counted = await tenantWork.bounded(orgId, (tx) =>
      countRefusals(tx, actor, summed(refusals)),
    );
    for (const { detail: _, ...refusal } of counted) {
      security.warn({ orgId, tokenId, ...refusal }, 'a SCIM write was refused');
    }
  } catch (error) {
    security.warn({ orgId, tokenId }, `a refused SCIM write is not recorded: ${reasonOf(error)}`);
  }
}

/** Adds up the refusals of one request that are equal, and keeps the detail of the last one. */
function summed(refusals: readonly ScimRefusal[]): CountedRefusal[] {
  const sums = new Map<string, CountedRefusal>();
  for (const refusal of refusals) {
    const { resourceType, resourceId, reason } = refusal;
    const key = `${resourceType} ${resourceId} ${reason}`;
    const detail = toSingleLine(refusal.detail, LONGEST_DETAIL) ?? '';
    sums.set(key, { ...refusal, detail, count: 1 + (sums.get(key)?.count ?? 0) });
  }
  return [...sums.values()];
}
