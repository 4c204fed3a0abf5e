/** The number of failed checks in a row after which a domain loses its proof. */
export const MOST_FAILURES = 3;

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/**
 * The milliseconds after the DNS record was last seen during which a fault of the DNS does not
 * count as a failed check.
 */
const FAULTS_FORGIVEN = 7 * DAY;

/**
 * The states of a domain. `verified`: the organization owns it. `pending`: the organization never
 * owned it. `failing`: the organization owns it, but the last checks did not find the record.
 * `unverified`: the organization owned it once, and then lost it, for example because the record
 * was missing, or because another organization proved the domain.
 */
export type DomainState = 'verified' | 'pending' | 'failing' | 'unverified';

/** The stored facts of a domain from which its state is derived. */
export interface DomainFacts {
  readonly verifiedAt: Date | null;
  readonly unverifiedAt: Date | null;
  readonly failures: number;
}

/**
 * Returns the state of a domain. The organization owns the domain while the state is `verified` or
 * `failing`.
 */
export function stateOf({ verifiedAt, unverifiedAt, failures }: DomainFacts): DomainState {
  if (verifiedAt !== null) return failures === 0 ? 'verified' : 'failing';
  return unverifiedAt === null ? 'pending' : 'unverified';
}

/**
 * The result of a check: the record is in the DNS, it is not, or the DNS gave no usable response.
 */
export type CheckResult = 'found' | 'missing' | 'fault';

/** The facts of a verified domain to store after a check. */
export interface Checked {
  readonly failures: number;
  readonly lastProvenAt: Date;
  readonly nextCheckAt: Date;
}

/**
 * Returns the facts of a domain after a daily check. A missing record is a failure. After a fault
 * of the DNS, the check is repeated in an hour. The fault counts as a failure only if the record
 * was not seen for seven days. So no domain is lost by a short outage, and none is kept if its DNS
 * zone never responds again.
 *
 * @param spread a number from 0 to 1 that distributes the checks of many domains over an hour
 */
export function afterCheck(
  before: { readonly failures: number; readonly lastProvenAt: Date },
  result: CheckResult,
  now: Date,
  spread: number,
): Checked {
  const { failures, lastProvenAt } = before;
  if (result === 'found') {
    return { failures: 0, lastProvenAt: now, nextCheckAt: nextDay(now, spread) };
  }
  const isForgiven = now.getTime() - lastProvenAt.getTime() < FAULTS_FORGIVEN;
  if (result === 'fault' && isForgiven) {
    return { failures, lastProvenAt, nextCheckAt: new Date(now.getTime() + HOUR) };
  }
  return { failures: failures + 1, lastProvenAt, nextCheckAt: nextDay(now, spread) };
}

/**
 * Returns a time 23 to 24 hours from now. So a domain is checked at least once a day, and the
 * checks of many domains are not all at the same time.
 *
 * @param spread a number from 0 to 1; the time is this part of an hour earlier
 */
export function nextDay(now: Date, spread: number): Date {
  return new Date(now.getTime() + DAY - spread * HOUR);
}
