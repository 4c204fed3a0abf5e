import { AUDIT_KINDS, type AuditKind } from '#domain/audit/audit-kinds.js';
import type { Timeline } from '#domain/admin/audit-search/timeline.js';
import { moment, type Moment } from '../../shell/moment.js';

/** The size of the timeline's drawing in units of SVG. */
const SIZE = { width: 720, height: 120 } as const;

/**
 * A part of a bar in the timeline: the events of one kind in one section of time. Positions and
 * sizes are in units of SVG.
 */
interface Bar {
  readonly kind: AuditKind;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A timeline for its template, which shows it as a drawing and as a table. */
export interface TimelineDrawing {
  readonly width: number;
  readonly height: number;
  readonly bars: readonly Bar[];
  readonly kinds: readonly {
    readonly kind: AuditKind;
    readonly name: string;
    readonly total: number;
  }[];
  readonly rows: readonly {
    readonly at: Moment;
    readonly cells: readonly number[];
    readonly total: number;
  }[];
  readonly from: Moment;
  readonly to: Moment;
  readonly total: string;
  readonly isCut: boolean;
}

/**
 * Draws a timeline of events: a bar for each section of time, with a part for each kind of events.
 * Returns undefined for a timeline without sections.
 */
export function drawingOf(timeline: Timeline): TimelineDrawing | undefined {
  const { sections, kinds, isCut } = timeline;
  const [first, last] = [sections[0], sections.at(-1)];
  if (!first || !last) return undefined;
  const highest = Math.max(1, ...sections.map(({ total }) => total));
  const step = SIZE.width / sections.length;
  const bars = sections.flatMap(({ events }, index) => {
    let y: number = SIZE.height;
    return kinds.flatMap((kind): Bar[] => {
      const n = events[kind] ?? 0;
      if (n === 0) return [];
      const height = Math.max(2, (n / highest) * SIZE.height);
      y -= height;
      return [
        {
          kind,
          x: rounded(index * step + 1),
          y: rounded(Math.max(0, y)),
          width: rounded(step - 2),
          height: rounded(height),
        },
      ];
    });
  });
  return {
    ...SIZE,
    bars,
    kinds: kinds.map((kind) => ({
      kind,
      name: AUDIT_KINDS[kind],
      total: sections.reduce((sum, { events }) => sum + (events[kind] ?? 0), 0),
    })),
    rows: sections
      .filter(({ total }) => total > 0)
      .map(({ from, events, total }) => ({
        at: moment(from),
        cells: kinds.map((kind) => events[kind] ?? 0),
        total,
      })),
    from: moment(first.from),
    to: moment(last.to),
    total: timeline.total.toLocaleString('en-GB'),
    isCut,
  };
}

function rounded(size: number): number {
  return Math.round(size * 10) / 10;
}
