/**
 * The number of certificates of a user on record and not revoked, expired ones included, beyond
 * which the user gets no further one. The transaction that ends the access of a user revokes all of
 * them, which takes up to 13 s for this number. With more, it could exceed the time limit of a
 * request, and the user could not be removed.
 */
const MOST_ON_RECORD = 200_000;

/**
 * The number of issued certificates of a user after which a request counts the certificates of the
 * user again. To count them costs more the more there are, and the limit need not be exact.
 */
const EVERY = 500;

/** The most users whose issues a process counts. If there are more, it forgets all of them. */
const MOST_USERS = 10_000;

/**
 * Decides which requests for a certificate count the certificates of their user, and states the
 * limit for those.
 */
export class CertificateCounts {
  readonly #issues = new Map<string, number>();

  constructor(
    private readonly mostOnRecord = MOST_ON_RECORD,
    private readonly every = EVERY,
  ) {}

  /**
   * Returns the limit if this request of a user counts the certificates; otherwise undefined. The
   * first request of a user in this process counts them, and then one after every 500 certificates.
   */
  limitOf(userId: string): number | undefined {
    return this.#issues.has(userId) ? undefined : this.mostOnRecord;
  }

  /**
   * Notes that a user got a certificate. A request that got none is not noted, so that the next one
   * counts too. Otherwise a user could have each counting request refused for another reason, and
   * exceed the limit.
   */
  noteIssued(userId: string): void {
    const issued = (this.#issues.get(userId) ?? 0) + 1;
    this.#issues.delete(userId);
    if (issued >= this.every) return;
    if (this.#issues.size >= MOST_USERS) this.#issues.clear();
    this.#issues.set(userId, issued);
  }
}
