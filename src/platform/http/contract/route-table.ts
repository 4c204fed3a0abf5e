/** A row: a path, or a path and everything below it (`/scim/v2/*`, `/v1/keys*`), and what holds there. */
export type RouteRow<T> = readonly [pattern: string, value: T];

/**
 * What holds for which routes. A look-up takes a request's path or a route's template alike, and reads it as the router
 * does: whatever its case, with or without a slash at its end. The longest pattern wins, an exact one over its prefix.
 */
export class RouteTable<T> {
  readonly #exact = new Map<string, T>();
  readonly #below = new Map<string, T>();
  readonly #depth: number;

  constructor(rows: readonly RouteRow<T>[]) {
    for (const [pattern, value] of rows) {
      const isPrefix = pattern.endsWith('*');
      const rowsOfKind = isPrefix ? this.#below : this.#exact;
      const path = normalize(isPrefix ? pattern.slice(0, -1) : pattern);
      if (rowsOfKind.has(path)) throw new Error(`The route table names ${pattern} twice`);
      rowsOfKind.set(path, value);
    }
    this.#depth = Math.max(0, ...[...this.#below.keys()].map((path) => path.split('/').length));
  }

  /** @returns what holds for the path; undefined where no row speaks of it */
  of(path: string): T | undefined {
    const asWritten = this.#exact.get(path);
    if (asWritten !== undefined) return asWritten;
    const normal = normalize(path);
    const exact = this.#exact.get(normal);
    if (exact !== undefined) return exact;
    // No deeper than the deepest row: a hostile path may have thousands of segments.
    let segments = normal.split('/', this.#depth);
    for (; segments.length > 0; segments = segments.slice(0, -1)) {
      const value = this.#below.get(segments.join('/'));
      if (value !== undefined) return value;
    }
    return undefined;
  }
}

/** One spelling of a path: lower case, no slash at its end; the root is empty. */
function normalize(path: string): string {
  const lower = path.toLowerCase();
  return lower.endsWith('/') ? lower.slice(0, -1) : lower;
}
