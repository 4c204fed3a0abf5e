/**
 * The most tokens that a process remembers of one kind. For a further one it forgets the one that
 * was looked up longest ago.
 */
const MOST_REMEMBERED = 5_000;

/**
 * Remembers what the last look-ups of this process found by tokens, such as sessions. A remembered
 * session may have ended since, also on another replica. So it decides nothing: a statement must
 * find the token again before anything is sent or written for it. The tokens are kept as hashes.
 *
 * @typeParam Found what a look-up finds by a token
 */
export class RememberedTokens<Found> {
  readonly #found = new Map<string, Found>();

  /** Returns what the last look-up found by a token, given by its hash; undefined if nothing. */
  get(hash: Buffer): Found | undefined {
    return this.#found.get(keyOf(hash));
  }

  /** Remembers what a look-up has found by a token; undefined if it found nothing. */
  set(hash: Buffer, found: Found | undefined): void {
    const key = keyOf(hash);
    this.#found.delete(key);
    if (found === undefined) return;
    this.#found.set(key, found);
    const [oldest] = this.#found.size > MOST_REMEMBERED ? this.#found.keys() : [];
    if (oldest !== undefined) this.#found.delete(oldest);
  }
}

function keyOf(hash: Buffer): string {
  return hash.toString('base64url');
}
