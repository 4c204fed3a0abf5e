import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { listAdmitted, type ListedPerson } from './reach-of-people.repository.js';
import type { Target } from './target.js';
import { listTargets, placeOf, target, type TargetRow } from './targets.repository.js';

/** The most targets, and the most people of a target, that one statement of an export reads. */
const BATCH = { targets: 100, people: 500 } as const;

/**
 * A line of the export: a target with a person that it admits. A target that admits everyone or no
 * person has one line without a person.
 */
export interface ReachLine {
  readonly target: Target;
  readonly person: ListedPerson | null;
}

/**
 * A function that runs a read, which counts toward the limit on the database connections and time
 * of one organization.
 */
type Read = <Found>(work: (tx: EntityManager) => Promise<Found>) => Promise<Found>;

/**
 * Reads for an export which people may use which targets, target by target. The next batch is read
 * only after the caller has taken the previous one, so that at most one batch is in memory.
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
    yield [{ target: of, person: null }];
    return;
  }
  let isEmpty = true;
  for (let after: string | undefined; ;) {
    const range = { after, limit: BATCH.people };
    const { people, next } = await read((tx) => listAdmitted(tx, orgId, of, range));
    isEmpty &&= people.length === 0;
    if (people.length > 0) yield people.map((person) => ({ target: of, person }));
    if (next === null) break;
    after = next;
  }
  // A target that admits no person also gets a line, so that the export names every target.
  if (isEmpty) yield [{ target: of, person: null }];
}
