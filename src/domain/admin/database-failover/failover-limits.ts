/**
 * The times that a failover of the database depends on, in milliseconds. A test sets shorter ones.
 */
export interface FailoverLimits {
  /** The interval between two heartbeats that each process writes. */
  readonly heartbeat: number;
  /**
   * A process counts as running if its newest heartbeat is at most this many milliseconds older
   * than the newest heartbeat of all processes.
   */
  readonly recent: number;
  /**
   * The longest wait for the reports of the running processes about a new database server, counted
   * from the first report.
   */
  readonly patience: number;
  /**
   * The interval at which a process that has reported checks if the database server is confirmed
   * for use. It is short, because requests get 503 until then. It is also the pause before another
   * try after a standby has answered: such a server runs, and is probably being promoted.
   */
  readonly poll: number;
  /**
   * The pause before another try after a fault. It is longer than `poll`, because each try makes a
   * connection to a server that may just be starting.
   */
  readonly retry: number;
  /**
   * The time for which a process remembers all of its commits, to compare them with a new database
   * server.
   */
  readonly remembered: number;
}

/** The values of {@link FailoverLimits} in production, in milliseconds. */
export const FAILOVER_LIMITS: FailoverLimits = {
  heartbeat: 500,
  recent: 30_000,
  patience: 30_000,
  poll: 100,
  retry: 250,
  remembered: 60_000,
};
