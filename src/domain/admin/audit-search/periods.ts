const DAY = 86_400_000;

/** The days of a week, in the order of `Date.getUTCDay`. */
const WEEKDAYS = [
  'sunday',
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
] as const;

/**
 * The periods relative to today that a search can name, with their words on pages. All days are of
 * UTC.
 */
export const PERIODS = {
  today: 'Today',
  yesterday: 'Yesterday',
  last_7_days: 'The last 7 days',
  last_30_days: 'The last 30 days',
  this_week: 'This week',
  last_week: 'Last week',
  last_monday: 'Last Monday',
  last_tuesday: 'Last Tuesday',
  last_wednesday: 'Last Wednesday',
  last_thursday: 'Last Thursday',
  last_friday: 'Last Friday',
  last_saturday: 'Last Saturday',
  last_sunday: 'Last Sunday',
} as const;

/** The name of a period relative to today. */
export type Period = keyof typeof PERIODS;

/** The first and the last day of a period, as `YYYY-MM-DD`. */
export interface Days {
  readonly from: string;
  readonly to: string;
}

/**
 * Returns the days of a period. `last_tuesday` is the latest Tuesday before today, also if today is
 * a Tuesday. A week begins on Monday.
 */
export function daysOf(period: Period, now: Date): Days {
  const today = Math.floor(now.getTime() / DAY) * DAY;
  const ago = (first: number, last = first) => ({
    from: dayOf(today - first * DAY),
    to: dayOf(today - last * DAY),
  });
  const sinceMonday = (now.getUTCDay() + 6) % 7;
  const lengths: Partial<Record<Period, Days>> = {
    today: ago(0),
    yesterday: ago(1),
    last_7_days: ago(6, 0),
    last_30_days: ago(29, 0),
    this_week: ago(sinceMonday, 0),
    last_week: ago(sinceMonday + 7, sinceMonday + 1),
  };
  const weekday = WEEKDAYS.findIndex((name) => period === `last_${name}`);
  return lengths[period] ?? ago(((now.getUTCDay() - weekday + 6) % 7) + 1);
}

/** Returns the day in UTC, as `YYYY-MM-DD`, of a time in milliseconds since 1970. */
export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/**
 * Reads a day as its first moment in UTC; undefined for a text that is no day of the years 1970 to
 * 9998.
 */
export function parseDay(text: string): Date | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  const time = Date.parse(`${text}T00:00:00Z`);
  const isDay = time >= 0 && text < '9999' && dayOf(time) === text;
  return isDay ? new Date(time) : undefined;
}

/** Returns the first moment after a day in UTC. */
export function endOfDay(day: Date): Date {
  return new Date(day.getTime() + DAY);
}
