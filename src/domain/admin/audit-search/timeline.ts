import type { TimelineCount } from '#domain/audit/audit-events.repository.js';
import { AUDIT_KINDS, kindOf, type AuditKind } from '#domain/audit/audit-kinds.js';

/** A section of a timeline: a span of time, with the number of its audit events of each kind. */
export interface TimelineSection {
  readonly from: Date;
  readonly to: Date;
  readonly events: Readonly<Partial<Record<AuditKind, number>>>;
  readonly total: number;
}

/** The numbers of audit events over time, by kind, in sections of the same length. */
export interface Timeline {
  readonly sections: readonly TimelineSection[];
  /** The kinds of events that occur, in the order of the admin console. */
  readonly kinds: readonly AuditKind[];
  readonly total: number;
  /**
   * True if the search stopped at its limit of events, so that events before the first section are
   * left out.
   */
  readonly isCut: boolean;
}

/**
 * Makes a timeline from the counts of the database, and adds them up by kind. Returns undefined if
 * no event matches the search.
 */
export function timelineOf(
  counts: readonly TimelineCount[],
  sections: number,
): Timeline | undefined {
  const [first] = counts;
  if (!first) return undefined;
  const start = first.lo.getTime();
  const length = (first.hi.getTime() - start) / sections;
  const events = Array.from({ length: sections }, (): Partial<Record<AuditKind, number>> => ({}));
  for (const { type, class: ofClass, section, events: n } of counts) {
    const at = events[section - 1];
    const kind = kindOf(type, ofClass);
    if (at) at[kind] = (at[kind] ?? 0) + n;
  }
  const filled = events.map((each, index) => ({
    from: new Date(start + index * length),
    to: new Date(start + (index + 1) * length),
    events: each,
    total: Object.values(each).reduce((sum, n) => sum + n, 0),
  }));
  return {
    sections: filled,
    kinds: (Object.keys(AUDIT_KINDS) as AuditKind[]).filter((kind) =>
      events.some((each) => each[kind] !== undefined),
    ),
    total: filled.reduce((sum, { total }) => sum + total, 0),
    isCut: first.isCut,
  };
}
