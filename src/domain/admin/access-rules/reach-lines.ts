import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { listAdmitted, type ListedPerson } from './reach-of-people.repository.js';
import type { Target } from './target.js';
import { listTargets, placeOf, target, type TargetRow } from './targets.repository.js';

/** The number of targets, and of people, that one statement reads. */
const BATCH = { targets: 100, people: 500 } as const;

/**
 * A target with a person whom it admits. A target that admits everyone, or no one, has one line
 * without a person.
 */
export interface ReachLine {
  readonly target: Target;
  readonly person: ListedPerson | null;
  readonly because: 'everyone' | 'person' | 'group' | null;
}

/** Runs a statement in the share of the organization. */
type Read = <Found>(work: (tx: EntityManager) => Promise<Found>) => Promise<Found>;

/**
 * Reads who reaches what, target by target. The next batch is read after the reader has taken the
 * previous one, so that one batch at most is in memory.
 */
export async function* linesOfReach(
  orgId: string,
  read: Read,
): AsyncGenerator<readonly ReachLine[]> {
  for (let after: TargetRow | undefined; ;) {
    const range = { after: after && placeOf(after), limit: BATCH.targets };
    const rows = await read((tx) => listTargets(tx, orgId, range));
    for (const row of rows) yield* linesOfTarget(orgId, target(row), read);
    after = rows.at(-1);
    if (after === undefined || rows.length < BATCH.targets) return;
  }
}

async function* linesOfTarget(
  orgId: string,
  of: Target,
  read: Read,
): AsyncGenerator<readonly ReachLine[]> {
  if (of.access === 'everyone') {
    yield [{ target: of, person: null, because: 'everyone' }];
    return;
  }
  let isEmpty = true;
  for (let after: string | undefined; ;) {
    const range = { after, limit: BATCH.people };
    const { people, next } = await read((tx) => listAdmitted(tx, orgId, of, range));
    isEmpty &&= people.length === 0;
    if (people.length > 0) {
      yield people.map((person) => ({ target: of, person, because: person.because }));
    }
    if (next === null) break;
    after = next;
  }
  // A target that admits no one has a line, too.
  if (isEmpty) yield [{ target: of, person: null, because: null }];
}
