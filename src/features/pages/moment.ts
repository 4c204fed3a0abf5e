/** A point in time as a page shows it: for `<time datetime>`, and for people. */
export interface Moment {
  readonly iso: string;
  /** In UTC, since the server cannot know the reader's zone; the page's script can. */
  readonly text: string;
}

const FORMAT = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'short',
  timeZone: 'UTC',
});

/** Writes a point in time for a page: `21 Nov 2026, 10:28 UTC`. */
export function moment(date: Date): Moment {
  return { iso: date.toISOString(), text: `${FORMAT.format(date)} UTC` };
}
