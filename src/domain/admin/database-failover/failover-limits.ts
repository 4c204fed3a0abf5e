/** The times of a failover, in milliseconds. A test sets shorter ones. */
export interface FailoverLimits {
  /** The interval at which each process writes that it runs. */
  readonly heartbeat: number;
  /**
   * The milliseconds before the newest heartbeat of any process. A process counts as running if its
   * own newest heartbeat is not older.
   */
  readonly recent: number;
  /** The longest wait for the reports of running processes, from the first report on. */
  readonly patience: number;
  /** The interval at which a process looks whether the server is confirmed. */
  readonly poll: number;
  /** The time for which every commit is remembered. */
  readonly remembered: number;
}

/** The times in production. */
export const FAILOVER_LIMITS: FailoverLimits = {
  heartbeat: 500,
  recent: 30_000,
  patience: 30_000,
  poll: 250,
  remembered: 60_000,
};
