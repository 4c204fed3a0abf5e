/** A point in time, as a page shows it: the attribute `datetime` of `<time>`, and a text. */
export interface Moment {
  readonly iso: string;
  /**
   * The time in UTC, since the server does not know the reader's time zone. The page's script
   * converts it to local time.
   */
  readonly text: string;
  /**
   * The time of the day without the date, in UTC: `10:28:05`. It is for a line below the name of
   * its day.
   */
  readonly clock: string;
}

/** Returns in words the time until a later moment: `7 h 40 min`, or `less than a minute`. */
export function timeLeft(end: Date, now: Date): string {
  const minutes = Math.floor((end.getTime() - now.getTime()) / 60_000);
  if (minutes < 1) return 'less than a minute';
  const hours = Math.floor(minutes / 60);
  const rest = minutes % 60;
  return [hours > 0 ? `${hours} h` : '', rest > 0 ? `${rest} min` : ''].filter(Boolean).join(' ');
}

const UTC = { timeZone: 'UTC' } as const;
const DATE = new Intl.DateTimeFormat('en-GB', { ...UTC, dateStyle: 'medium' });
const CLOCK = new Intl.DateTimeFormat('en-GB', { ...UTC, timeStyle: 'medium' });

/** Formats a point in time for a page: `21 Nov 2026, 10:28:05 UTC`. */
export function moment(date: Date): Moment {
  const clock = CLOCK.format(date);
  return { iso: date.toISOString(), text: `${DATE.format(date)}, ${clock} UTC`, clock };
}
