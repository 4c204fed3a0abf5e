/**
 * The number of certificates of a user on record and not revoked, expired ones included, beyond
 * which the user gets no further one. The transaction that ends the access of a user revokes all of
 * them, which takes up to 13 s for this number. With more, it could exceed the time limit of a
 * request, and the user could not be removed.
 */
const MOST_ON_RECORD = 200_000;

/**
 * The number of requests of a user of which one counts the certificates of the user. To count them
 * costs more the more there are, and the limit need not be exact.
 */
const EVERY = 500;

/** The most users whose requests a process counts. If there are more, it forgets all of them. */
const MOST_USERS = 10_000;

/**
 * Decides which requests for a certificate count the certificates of their user, and states the
 * limit for those.
 */
export class CertificateCounts {
  readonly #requests = new Map<string, number>();

  constructor(
    private readonly mostOnRecord = MOST_ON_RECORD,
    private readonly every = EVERY,
  ) {}

  /**
   * Returns the limit if this request of a user counts the certificates; otherwise undefined. The
   * first request of a user in this process counts them, and then every 500th.
   */
  limitOf(userId: string): number | undefined {
    const earlier = this.#requests.get(userId) ?? 0;
    if (earlier === 0 && this.#requests.size >= MOST_USERS) this.#requests.clear();
    this.#requests.set(userId, (earlier + 1) % this.every);
    return earlier === 0 ? this.mostOnRecord : undefined;
  }

  /** Makes the next request of a user count the certificates, because this one had too many. */
  noteTooMany(userId: string): void {
    this.#requests.delete(userId);
  }
}
