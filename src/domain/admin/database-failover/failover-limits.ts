/** The times of a failover, in milliseconds. A test sets shorter ones. */
export interface FailoverLimits {
  /** The interval at which each process says that it runs. */
  readonly heartbeat: number;
  /**
   * A process counts as running if it said so within this time before the last word of any process.
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
