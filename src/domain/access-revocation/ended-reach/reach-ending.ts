import type { RevokedCounts } from '../revocable.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Conditions, TargetKind } from '#domain/access/reach/decision.js';

/**
 * The part of the access rules that changed: the membership of a group, an assignment, the rule or
 * a condition of a target, or the target itself.
 */
export type EndedRule = 'membership' | 'assignment' | 'rule' | 'condition' | 'target';

/**
 * A row of the queue `access_endings`: a target, such as an AWS role, and the people who may have
 * lost it by a change. The target itself may be deleted.
 */
export interface Ending {
  readonly id: string;
  readonly orgId: string;
  readonly targetId: string;
  readonly kind: TargetKind;
  readonly clientId: string | null;
  readonly installationId: string | null;
  readonly targetName: string;
  readonly rule: EndedRule;
  /**
   * The people who may have lost access to the target. Null means every person who holds a
   * credential for the target.
   */
  readonly userIds: readonly string[] | null;
  /** True if the people are the members of a group whose assignment was removed. */
  readonly isOfGroup: boolean;
  /**
   * The last credential that the previous batch checked, after which the next batch begins; empty
   * for the first batch.
   */
  readonly place: string;
  readonly actorId: string | null;
  readonly scimTokenId: string | null;
  readonly requestId: string | null;
}

/**
 * The numbers of credentials of one person that ended, because a target does not admit the person
 * any more.
 */
export interface EndedReach {
  readonly userId: string;
  readonly counts: RevokedCounts;
}

/** The result of one batch: some of the credentials that a queued row may end. */
export interface EndedReaches {
  readonly ended: readonly EndedReach[];
  /** The owners of the credentials that the batch checked. A person may occur several times. */
  readonly people: readonly string[];
  /** The last credential that this batch checked; undefined after the last batch. */
  readonly next: string | undefined;
}

/**
 * A kind of credential that a person gets for a target, such as SSH certificates. The person loses
 * it if the target does not admit the person any more.
 */
export interface ReachEnding {
  readonly kinds: readonly TargetKind[];
  /**
   * Checks the next credentials after `ending.place`, at most `most`, and ends those whose owner
   * the target does not admit any more. Before it ends a credential, the method locks the row of
   * the owner and decides again, because a rule may have changed before the lock.
   */
  endBatch(tx: EntityManager, ending: Ending, most: number): Promise<EndedReaches>;
  /**
   * Counts the credentials of this kind that people hold for a target and would lose by a planned
   * change. With the count a page can warn before the change. Returns undefined if more than {@link
   * PREVIEW_BOUNDS.examined} credentials would have to be examined.
   */
  countHeld(
    tx: EntityManager,
    targetId: string,
    losers: Losers,
  ): Promise<RevokedCounts | undefined>;
}

/**
 * The people that a target would not admit any more after a planned change, so that a page can
 * count their credentials before the change.
 */
export type Losers =
  /**
   * The ids of the people who would lose the target; null for every person who holds a credential
   * for the target.
   */
  | { readonly userIds: readonly string[] | null }
  /**
   * The people whose touches of a security key do not meet the new conditions, and everyone who is
   * not in the organization `outsidersOf`. The people of `except` are left out, because they are
   * counted already.
   */
  | {
      readonly unmet: Conditions | undefined;
      readonly outsidersOf?: string | undefined;
      readonly except: readonly string[];
    };

/**
 * `examined`: the most credentials of one kind that a preview of a change examines. Each costs a
 * look-up of a session, and the costly statements of an organization have a short time limit. A
 * test lowers the number, so that it has to insert fewer credentials.
 */
export const PREVIEW_BOUNDS = { examined: 10_000 };

/** The result of a batch that found no credentials. */
export const NOTHING_HELD: EndedReaches = { ended: [], people: [], next: undefined };

/**
 * Counts the ended credentials of each person.
 *
 * @param name the name of the count, such as `certificates`
 */
export function byPerson(
  ended: readonly { readonly userId: string }[],
  name: string,
): EndedReach[] {
  const counts = new Map<string, number>();
  for (const { userId } of ended) counts.set(userId, (counts.get(userId) ?? 0) + 1);
  return [...counts].map(([userId, n]) => ({ userId, counts: { [name]: n } }));
}
