import { now } from '../program/clock.js';
import { CliFailure } from '../program/failure.js';
import type { AnswerHeaders } from './transport.js';

/**
 * The largest difference between the clocks of this machine and of the server, in milliseconds,
 * that counts as right.
 */
const GREATEST_DIFFERENCE = 60_000;
/** The difference in milliseconds from which the server refuses proofs (RFC 9449 §11.1). */
const REFUSED_DIFFERENCE = 300_000;

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/**
 * Returns by how many milliseconds the clock of this machine is ahead of the server; negative if it
 * is behind. The time of the server is the header `Date` of an answer that just came. Without the
 * header, the result is undefined.
 */
export function clockDifference(headers: AnswerHeaders): number | undefined {
  const difference = now() - Date.parse(headers.get('date') ?? '');
  return Number.isFinite(difference) ? difference : undefined;
}

/** Returns true if a difference of clocks is too large to count as right. */
export function isWrong(difference: number | undefined): difference is number {
  return difference !== undefined && Math.abs(difference) > GREATEST_DIFFERENCE;
}

/** Returns the difference of the clocks in words, such as `10 minutes behind the server`. */
export function differenceInWords(difference: number): string {
  const size = Math.abs(difference);
  const [unit, length] = UNITS.find(([, one]) => size >= 2 * one) ?? (['second', 1000] as const);
  const count = Math.round(size / length);
  return `${count} ${unit}${count === 1 ? '' : 's'} ${difference < 0 ? 'behind' : 'ahead of'} the server`;
}

/** The next step if the clock is wrong. */
export const SET_CLOCK = 'Set it, for example by: sudo timedatectl set-ntp true';

/**
 * Returns the failure for a request that the server refused because the clock of this machine is
 * wrong. Such an answer refuses the DPoP proof (RFC 9449), and its `Date` differs from the local
 * time. Returns undefined for any other answer.
 */
export function clockFailure(
  headers: AnswerHeaders,
  code: string | undefined,
): CliFailure | undefined {
  const challenge = headers.get('www-authenticate') ?? '';
  const isOfProof = [code, challenge].some(
    (text) => text?.includes('invalid_dpop_proof') || text?.includes('use_dpop_nonce'),
  );
  const difference = isOfProof ? clockDifference(headers) : undefined;
  return isWrong(difference) ? failureFor(difference) : undefined;
}

/**
 * Checks before a login that the server will accept the proofs of this machine.
 * @throws CliFailure if the clocks differ by more than five minutes
 */
export function assertClock(headers: AnswerHeaders): void {
  const difference = clockDifference(headers);
  if (difference !== undefined && Math.abs(difference) > REFUSED_DIFFERENCE) {
    throw failureFor(difference);
  }
}

function failureFor(difference: number): CliFailure {
  const message = `The clock of this machine is ${differenceInWords(difference)}, which therefore refuses its requests.`;
  return new CliFailure(message, SET_CLOCK);
}
