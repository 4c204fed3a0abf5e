/**
 * The times that a failover of the database depends on, in milliseconds. A test sets shorter ones.
 */
export interface FailoverLimits {
  /** The interval between two heartbeats that each process writes. */
  readonly heartbeat: number;
  /**
   * The milliseconds by which the newest heartbeat of a process may be older than the newest one of
   * all processes. If it is not older, the process counts as running.
   */
  readonly recent: number;
  /** The longest wait for the reports of running processes, counted from the first report. */
  readonly patience: number;
  /** The interval at which a process checks if the server is confirmed. */
  readonly poll: number;
  /** The time for which a process remembers all of its commits. */
  readonly remembered: number;
}

/** The times of a failover in production. */
export const FAILOVER_LIMITS: FailoverLimits = {
  heartbeat: 500,
  recent: 30_000,
  patience: 30_000,
  poll: 250,
  remembered: 60_000,
};
