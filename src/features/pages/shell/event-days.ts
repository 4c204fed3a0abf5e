import type { Moment } from './moment.js';

/**
 * A part of a text: fixed words of the product, or a name. The page isolates a name (`<bdi>`), so
 * that letters from right to left do not reorder the words around it.
 */
export interface TextPart {
  readonly text: string;
  readonly isName: boolean;
}

/** An event as one line of a page, and the facts that the user sees after opening the line. */
export interface EventLine {
  readonly type: string;
  readonly at: Moment;
  readonly sentence: readonly TextPart[];
  /** The facts of the event: a label and a text each. A fact without a text is left out. */
  readonly facts: readonly (readonly [label: string, text: string | null | undefined])[];
  /** The path of the page about the event alone, if it has one. */
  readonly href?: string;
}

/** The events of one day. */
export interface EventDay {
  /** The name of the day in UTC: `Friday, 27 November 2026, UTC`. */
  readonly name: string;
  readonly lines: readonly EventLine[];
}

const DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeZone: 'UTC' });

/**
 * Groups events by their days in UTC, in the order of the list. The script `days.js` groups them
 * again by the days of the reader's time zone, which the server does not know.
 */
export function eventDays(lines: readonly EventLine[]): EventDay[] {
  const days: { name: string; lines: EventLine[] }[] = [];
  for (const line of lines) {
    const name = `${DAY.format(new Date(line.at.iso))}, UTC`;
    const last = days.at(-1);
    if (last?.name === name) last.lines.push(line);
    else days.push({ name, lines: [line] });
  }
  return days;
}
