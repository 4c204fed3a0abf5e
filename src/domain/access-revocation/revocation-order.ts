/**
 * The order in which the kinds of access end: a kind with a lower number locks its rows and ends
 * first. Each kind takes its number from this table, because two transactions that lock rows in
 * different orders could wait for each other forever.
 */
export const REVOCATION_ORDER = {
  /** Notices are queued before the sessions end, because a notice names its session. */
  logoutNotices: 5,
  /** Grants, codes and tokens end with their session. */
  sessions: 10,
  sshCertificates: 20,
  attestedSshKeys: 21,
  gitHubTokens: 25,
  /** Applications end with the tokens that were issued to the applications themselves. */
  applications: 30,
  clusters: 31,
  enrollmentPasses: 35,
  securityKeys: 40,
} as const;
