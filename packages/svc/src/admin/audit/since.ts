import { now } from '../../program/clock.js';
import { usageFailure } from '../../program/failure.js';

/** The milliseconds of each unit of a duration. */
const UNITS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/**
 * Reads the value of `--since` or `--until`: a duration before now such as `15m`, `2h` or `7d`, or
 * a time such as `2026-11-26` or `2026-11-26T08:00:00Z`. Returns a time of RFC 3339.
 *
 * @throws CliFailure with status 2 for another text
 */
export function timeOf(text: string | undefined, option: string): string | undefined {
  if (text === undefined) return undefined;
  const [, count = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const moment =
    unit === ''
      ? Date.parse(/^\d{4}-/.test(text) ? text : '')
      : now() - Number(count) * (UNITS[unit] ?? 0);
  if (Number.isFinite(moment)) return new Date(moment).toISOString();
  const message = `--${option} ${text} is no time and no duration.`;
  throw usageFailure(
    message,
    `svc admin audit --${option} 2h, or --${option} 2026-11-26T08:00:00Z`,
  );
}
