/**
 * Matches a pattern of host names that OpenSSH reads without quotes: it has no space, comma,
 * quotation mark or percent sign.
 */
const PATTERN = /^!?[A-Za-z0-9*?:][A-Za-z0-9*?._:-]*$/;

/** The largest number of characters of a host name (RFC 1035 §2.3.4), with a `!` before it. */
const LONGEST = 254;

/**
 * Returns true for a pattern of host names, such as `*.example.com` or `!db.example.com`
 * (ssh_config(5), PATTERNS).
 */
export function isHostPattern(text: string): boolean {
  return text.length <= LONGEST && PATTERN.test(text);
}
