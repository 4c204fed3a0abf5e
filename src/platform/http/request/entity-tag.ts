import { hash } from 'node:crypto';

/** A strong entity tag: the SHA-256 of the body in hexadecimal, so that whoever keeps the body can tell the tag. */
export function entityTag(body: Buffer | string): string {
  return `"${hash('sha256', body)}"`;
}

/**
 * Whether `If-None-Match` or `If-Match` names an entity tag (RFC 9110 §13.1), by weak comparison: the first asks for it, and the
 * second means one of our weak tags. Unlike Express' `request.fresh` it does not look at `Cache-Control`, which is a word to caches:
 * `fetch` sends `no-cache` along with every `If-None-Match`.
 */
export function namesTag(condition: string | undefined, tag: string): boolean {
  if (condition === undefined) return false;
  if (condition.trim() === '*') return true;
  return condition.match(/"[^"]*"/g)?.includes(tag.replace(/^W\//, '')) ?? false;
}
