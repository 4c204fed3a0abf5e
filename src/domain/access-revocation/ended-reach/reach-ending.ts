import type { RevokedCounts } from '../revocable.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Conditions, TargetKind } from '#domain/access/reach/decision.js';

/**
 * The rule that changed: a membership of a group, an assignment, the rule, a condition, the target.
 */
export type EndedRule = 'membership' | 'assignment' | 'rule' | 'condition' | 'target';

/** A row of the queue: people whose reach of a target may have ended. The target may be deleted. */
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
   * The people who may have lost their reach. Null: every person who holds a credential by the
   * target.
   */
  readonly userIds: readonly string[] | null;
  /**
   * The place in the order of the items after which the next batch begins; empty for the first one.
   */
  readonly place: string;
  readonly actorId: string | null;
  readonly scimTokenId: string | null;
  readonly requestId: string | null;
}

/** The items of one person that ended. */
export interface EndedReach {
  readonly userId: string;
  readonly counts: RevokedCounts;
}

/** The result of one batch. */
export interface EndedReaches {
  readonly ended: readonly EndedReach[];
  /** The people whose items the batch looked at; a person may occur several times. */
  readonly people: readonly string[];
  /** The place of the next batch; undefined after the last one. */
  readonly next: string | undefined;
}

/** A kind of credential that people hold by a target. */
export interface ReachEnding {
  readonly kinds: readonly TargetKind[];
  /**
   * Looks at the next items after `ending.place`, at most `most`, and ends those that the decision
   * now refuses. It first locks the rows of the users, and decides again after that.
   */
  endBatch(tx: EntityManager, ending: Ending, most: number): Promise<EndedReaches>;
  /** Counts what people hold by a target now and would lose, for a page that warns of a change. */
  countHeld(tx: EntityManager, targetId: string, losers: Losers): Promise<RevokedCounts>;
}

/** The people for whom a page counts what they would lose by a change of a target. */
export type Losers =
  /** The people who would lose the target; null for every person who holds a credential by it. */
  | { readonly userIds: readonly string[] | null }
  /**
   * The people whose touches do not meet new conditions, without the people of `except`, who are
   * counted already.
   */
  | { readonly unmet: Conditions; readonly except: readonly string[] };

/** The result of a batch without an item. */
export const NOTHING_HELD: EndedReaches = { ended: [], people: [], next: undefined };

/** Counts the ended items of each person, under the name of their kind. */
export function byPerson(
  ended: readonly { readonly userId: string }[],
  name: string,
): EndedReach[] {
  const counts = new Map<string, number>();
  for (const { userId } of ended) counts.set(userId, (counts.get(userId) ?? 0) + 1);
  return [...counts].map(([userId, n]) => ({ userId, counts: { [name]: n } }));
}
