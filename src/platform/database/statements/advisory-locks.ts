/**
 * The keys of PostgreSQL's advisory locks, all in one place so that no two purposes share one. A lock belongs to a
 * session: it ends with it, however the process ends.
 */
export const ADVISORY_LOCKS = {
  /** Held by whoever migrates; replicas that start together wait for it. */
  migrations: 7_301_001,
  /** Held for life by the process that supervises an embedded server. */
  embeddedServer: 7_301_002,
  /** Held while the SSH certificate authority of this deployment is settled at start. */
  sshAuthority: 7_301_003,
  /** Held by the replica that deletes expired rows; the others leave it to that one. */
  cleanUp: 7_301_004,
  /** Held by the transaction that registers a client for itself, so that its limits are counted exactly. */
  selfRegistration: 7_301_601,
} as const;
