/**
 * A row of the table: a value, and its path, or a pattern for a path and all paths below it
 * (`/scim/v2/*`, `/v1/keys*`).
 */
export type RouteRow<T> = readonly [pattern: string, value: T];

/**
 * Finds values by the path of a request or the template of a route. It ignores case and a slash at
 * the end, as the router does. The longest pattern wins, and an exact path wins over a pattern.
 */
export class RouteTable<T> {
  readonly #exact = new Map<string, T>();
  readonly #below = new Map<string, T>();
  readonly #depth: number;

  constructor(rows: readonly RouteRow<T>[]) {
    for (const [pattern, value] of rows) {
      const isPrefix = pattern.endsWith('*');
      const rowsOfKind = isPrefix ? this.#below : this.#exact;
      const path = normalizePath(isPrefix ? pattern.slice(0, -1) : pattern);
      if (rowsOfKind.has(path)) throw new Error(`The route table names ${pattern} twice`);
      rowsOfKind.set(path, value);
    }
    this.#depth = Math.max(0, ...[...this.#below.keys()].map((path) => path.split('/').length));
  }

  /**
   * Returns the value of a path.
   * @returns undefined if no row covers the path
   */
  of(path: string): T | undefined {
    const asWritten = this.#exact.get(path);
    if (asWritten !== undefined) return asWritten;
    const normal = normalizePath(path);
    const exact = this.#exact.get(normal);
    if (exact !== undefined) return exact;
    // The path is split no deeper than the deepest row, because a hostile path may have thousands
    // of segments.
    let segments = normal.split('/', this.#depth);
    for (; segments.length > 0; segments = segments.slice(0, -1)) {
      const value = this.#below.get(segments.join('/'));
      if (value !== undefined) return value;
    }
    return undefined;
  }
}

/** Normalizes a path: lower case, no slash at its end. The root becomes the empty string. */
export function normalizePath(path: string): string {
  const lower = path.toLowerCase();
  return lower.endsWith('/') ? lower.slice(0, -1) : lower;
}
