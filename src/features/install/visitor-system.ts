/** A system for which the page `/install` has instructions. */
export type VisitorSystem = 'unix' | 'windows';

/**
 * Returns the system of a visitor, by the headers that the browser sends. The result decides only
 * which instructions come first.
 *
 * @param platform the header `Sec-CH-UA-Platform` (User-Agent Client Hints), a quoted name
 */
export function systemOf(
  platform: string | undefined,
  userAgent: string | undefined,
): VisitorSystem {
  const name = platform ?? userAgent ?? '';
  return /windows/i.test(name) && !/windows phone/i.test(name) ? 'windows' : 'unix';
}
