/** The origin of a request, as its audit event records it. */
export interface AuditOrigin {
  /** The id of the request, which its response states in `x-fapi-interaction-id`. */
  readonly requestId: string;
  /**
   * The IP address of the client as trusted proxies report it, without a zone index (`%eth0`);
   * undefined if it is unknown.
   */
  readonly ip: string | undefined;
  readonly userAgent: string | undefined;
}
