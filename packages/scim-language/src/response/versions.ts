/**
 * Returns the entity tag for a version of a resource (RFC 7644 §3.14). The tag is weak, because two
 * responses of one version may differ in their bytes.
 *
 * @param version a text that changes with everything that clients see of the resource
 */
export function versionTag(version: string): string {
  return `W/"${version}"`;
}

/**
 * Returns true if the header `If-Match` or `If-None-Match` names a version (RFC 9110 §13.1). `*`
 * names every version. Both headers are compared weakly, because all tags of {@link versionTag} are
 * weak.
 */
export function namesVersion(condition: string | undefined, tag: string): boolean {
  if (condition === undefined) return false;
  if (condition.trim() === '*') return true;
  const named: readonly string[] = condition.match(/"[^"]*"/g) ?? [];
  return named.includes(tag.replace(/^W\//, ''));
}
