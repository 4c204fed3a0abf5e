import { localSecond, printable } from '../../terminal/table.js';

/** An event in the answers of the API. */
export interface PrintedEvent {
  readonly id: string;
  readonly type: string;
  readonly actor_email: string | null;
  readonly subject_email: string | null;
  readonly client_name: string | null;
  readonly ip: string | null;
  readonly created_at: string;
}

/** A page of events. `next` is the cursor of the page after it; null on the last page. */
export interface EventPage {
  readonly events: readonly PrintedEvent[];
  readonly next: string | null;
}

/**
 * The widths of the columns for the type and the actor, in characters. The widths are fixed,
 * because with `--follow` the lengths of later events are not known yet.
 */
const WIDTHS = { type: 27, actor: 28 } as const;

/** Formats an event as a line: time, type, who did it, and to whom or at which application. */
export function eventLine(event: PrintedEvent): string {
  const { type, actor_email: actor, subject_email: subject, client_name: client, ip } = event;
  const others = [subject === actor ? null : subject, client, ip && `from ${ip}`];
  const cells = [
    localSecond(new Date(event.created_at)),
    printable(type).padEnd(WIDTHS.type),
    printable(actor ?? '-').padEnd(WIDTHS.actor),
    ...others.filter((cell) => cell !== null && cell !== '').map((cell) => printable(String(cell))),
  ];
  return cells.join('  ').trimEnd();
}
