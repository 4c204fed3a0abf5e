/** Where a request came from, as its audit row records it. */
export interface AuditOrigin {
  /** The `x-fapi-interaction-id` of the request. */
  readonly requestId: string;
  /**
   * The client's address behind trusted proxies, without a zone index (`%eth0`); undefined if there
   * is none.
   */
  readonly ip: string | undefined;
  readonly userAgent: string | undefined;
}
