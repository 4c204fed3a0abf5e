/**
 * The keys of PostgreSQL's advisory locks, in one list so that no two purposes share a key. A lock
 * belongs to a session and ends with it, also when the process is killed.
 */
export const ADVISORY_LOCKS = {
  /** Held by the process that migrates. Other replicas that start poll for it. */
  migrations: 7_301_001,
  /** Held by the process that supervises an embedded server until it ends. */
  embeddedServer: 7_301_002,
  /** Held while a start registers the SSH certificate authority of this deployment. */
  sshAuthority: 7_301_003,
  /** Held by the replica that deletes expired rows; other replicas skip the deletion. */
  cleanUp: 7_301_004,
  /** Held by the replica that checks the DNS proofs of domains; other replicas skip the check. */
  domainChecks: 7_301_005,
  /** Held by the process that builds indexes in the background; others look again later. */
  backgroundMigrations: 7_301_008,
  /**
   * Held by the transaction that confirms a start of PostgreSQL; other replicas look again soon.
   */
  confirmation: 7_301_006,
  /**
   * Held by the transaction that registers a client for itself, so that its limits are counted
   * exactly.
   */
  selfRegistration: 7_301_601,
} as const;
