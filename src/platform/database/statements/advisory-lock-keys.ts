/**
 * The fixed keys of PostgreSQL's advisory locks, in one list, so that no key gets a second meaning
 * by mistake. A lock belongs to a session of the database or to a transaction, and is released when
 * that ends, even if the process is killed.
 */
export const ADVISORY_LOCKS = {
  /** The process that runs the migrations has this lock. Other replicas that start wait for it. */
  migrations: 7_301_001,
  /** The process that supervises an embedded server has this lock until the process ends. */
  embeddedServer: 7_301_002,
  /**
   * A transaction has this lock if it registers the SSH certificate authority of this deployment at
   * a start, or moves the serial numbers of certificates forward.
   */
  sshAuthority: 7_301_003,
  /**
   * The replica that deletes expired rows has this lock; other replicas skip the deletion. The
   * operator's command `archive` has it too, so that no event is deleted while it copies a month.
   */
  cleanUp: 7_301_004,
  /**
   * The replica that checks the DNS proofs of domains has this lock; other replicas skip the check.
   */
  domainChecks: 7_301_005,
  /**
   * The process that runs the background migrations has this lock; other processes try again later.
   */
  backgroundMigrations: 7_301_008,
  /**
   * The transaction that confirms a server of PostgreSQL, after a check for lost commits, has this
   * lock. Other replicas do not wait for the lock, and soon check again whether the server is
   * confirmed.
   */
  confirmation: 7_301_006,
  /**
   * A transaction that registers an OAuth client without a user (RFC 7591) has this lock, so that
   * the limits on such clients are counted exactly.
   */
  selfRegistration: 7_301_601,
} as const;
