import { normalizePath } from './route-table.js';

/**
 * A node in the tree of paths. Its children stand for the next segment of the path: one for each
 * fixed text, and one for a parameter.
 */
interface Node<T> {
  readonly fixed: Map<string, Node<T>>;
  parameter?: Node<T>;
  value?: T;
}

/**
 * Stores values by the template of a route, and finds them by the path of a request. A path of a
 * template without parameters costs one look-up in a map. Any other path is followed segment by
 * segment, and a fixed segment wins over a parameter.
 */
export class PathTree<T> {
  readonly #asWritten = new Map<string, T>();
  readonly #fixed = new Map<string, T>();
  readonly #root: Node<T> = { fixed: new Map() };
  #depth = 0;

  set(template: string, value: T): void {
    if (!template.includes(':')) {
      this.#asWritten.set(template, value);
      this.#fixed.set(normalizePath(template), value);
      return;
    }
    const segments = segmentsOf(template);
    this.#depth = Math.max(this.#depth, segments.length);
    let node = this.#root;
    for (const segment of segments) node = childOf(node, segment);
    node.value = value;
  }

  /**
   * Returns the value of the template that matches a path.
   * @returns undefined if no template matches
   */
  find(path: string): T | undefined {
    const asWritten = this.#asWritten.get(path);
    if (asWritten !== undefined) return asWritten;
    const normal = normalizePath(path);
    const fixed = this.#fixed.get(normal);
    if (fixed !== undefined) return fixed;
    // The path is split only one segment deeper than the deepest template, because a hostile path
    // may have thousands of segments.
    const segments = normal.split('/', this.#depth + 2).slice(1);
    return segments.length > this.#depth ? undefined : valueBelow(this.#root, segments, 0);
  }
}

function childOf<T>(node: Node<T>, segment: string): Node<T> {
  if (segment.startsWith(':')) return (node.parameter ??= { fixed: new Map() });
  const child = node.fixed.get(segment) ?? { fixed: new Map() };
  node.fixed.set(segment, child);
  return child;
}

function valueBelow<T>(node: Node<T>, segments: readonly string[], at: number): T | undefined {
  const segment = segments[at];
  if (segment === undefined) return node.value;
  const fixed = node.fixed.get(segment);
  const found = fixed && valueBelow(fixed, segments, at + 1);
  if (found !== undefined || segment === '' || !node.parameter) return found;
  return valueBelow(node.parameter, segments, at + 1);
}

/** Splits a path or a template into segments, normalized as the router does it. */
export function segmentsOf(template: string): readonly string[] {
  return normalizePath(template).split('/').slice(1);
}

/**
 * Returns true if the segments of a template match those of a path, or those of another template. A
 * parameter of that other template is compared like a fixed text.
 *
 * @param wanted the segments of the template
 * @param segments the segments of the path, or of the other template
 */
export function matchesSegments(wanted: readonly string[], segments: readonly string[]): boolean {
  return (
    wanted.length === segments.length &&
    wanted.every((segment, i) =>
      segment.startsWith(':') ? segments[i] !== '' : segment === segments[i],
    )
  );
}
