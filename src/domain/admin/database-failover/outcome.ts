import type { Logger } from '@nestjs/common';
import type { DatabaseIdentity } from '#platform/database/identity/database-identity.js';
import type { FailoverDecision } from './decision.js';

const PAGE = 'See docs/operations/failover.md.';

/**
 * Logs under `security` what a change of the database server meant, with what the operator has to
 * do. After a plain restart of PostgreSQL it logs nothing, because there is nothing to do.
 */
export function announce(security: Logger, decision: FailoverDecision): void {
  const { isAnother, isProved, hasWitness, endsEverything } = decision;
  if (endsEverything) {
    const reason = isProved
      ? 'the database lost commits'
      : `the database may have lost commits ${isAnother ? 'after a promotion or a restore' : 'in a crash'}`;
    security.warn(
      `${reason}: all sessions, grants, tokens and passes have ended, and all SSH certificates are revoked. ` +
        `Start a full directory sync, and confirm the listed tokens and secrets. ${PAGE}`,
    );
    return;
  }
  if (!isAnother) return;
  if (hasWitness) {
    security.log(`PostgreSQL was promoted or restored, and no commit is missing. ${PAGE}`);
    return;
  }
  security.warn(
    'PostgreSQL was promoted or restored, and no process can tell what was committed before. Since SVC_DATABASE_FAILOVER is ' +
      `synchronous, only the SSH certificates are revoked. ${PAGE}`,
  );
}

/** Returns the details of the audit event that records the confirmation of a database server. */
export function detailsOf(
  confirmed: DatabaseIdentity,
  identity: DatabaseIdentity,
  decision: FailoverDecision,
): object {
  const { endsEverything, isProved, hasWitness, isAnother } = decision;
  return {
    change: isAnother ? 'another server' : 'restart',
    timeline: identity.timeline,
    earlier_timeline: confirmed.timeline,
    loss: isProved ? 'proved' : hasWitness ? 'none' : 'unknown',
    ended_everything: endsEverything,
  };
}
