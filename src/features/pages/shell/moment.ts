/** A point in time for a page: for `<time datetime>`, and as a text. */
export interface Moment {
  readonly iso: string;
  /**
   * In UTC, since the server does not know the reader's time zone. The page's script converts it.
   */
  readonly text: string;
}

const FORMAT = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'short',
  timeZone: 'UTC',
});

/** Formats a point in time for a page: `21 Nov 2026, 10:28 UTC`. */
export function moment(date: Date): Moment {
  return { iso: date.toISOString(), text: `${FORMAT.format(date)} UTC` };
}
