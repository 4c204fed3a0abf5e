/**
 * The order in which the kinds of access end: the kind with the lower number locks its rows and
 * ends first. Each kind takes its number from this table, because two transactions that lock rows
 * in different orders could wait for each other forever.
 */
export const REVOCATION_ORDER = {
  /**
   * Security events for applications (OpenID Shared Signals) are queued first. This step also
   * stores the cause of the revocation in the transaction. Database triggers queue further events
   * when sessions end, and read the cause there.
   */
  signals: 3,
  /**
   * The notices that tell applications of a logout are queued before the sessions end, because a
   * notice names its session.
   */
  logoutNotices: 5,
  /** Grants, codes and tokens end with their session, so they have no number of their own. */
  sessions: 10,
  sshCertificates: 20,
  attestedSshKeys: 21,
  gitHubTokens: 25,
  /**
   * Applications of the user end together with the tokens that were issued to these applications.
   */
  applications: 30,
  clusters: 31,
  apiTokens: 33,
  demotedApiTokens: 34,
  enrollmentPasses: 35,
  eventReceivers: 37,
  securityKeys: 40,
} as const;
