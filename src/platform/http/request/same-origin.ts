/** In characters: what goes on in queries and headers must fit into them. */
const LONGEST = 2048;

/**
 * Where a browser ends up after a ceremony: the address asked for, if a browser would resolve it to our own origin,
 * else the start page. The answer is absolute, since a path such as `//evil` is another origin to a browser.
 *
 * @param target what the client asked for: a path or an address, trusted in nothing
 * @param baseUrl our own origin
 */
export function sameOriginTarget(target: string | undefined, baseUrl: string): string {
  const home = `${baseUrl}/`;
  if (target === undefined || hasControlCharacter(target) || !URL.canParse(target, home)) {
    return home;
  }
  const { origin, href, username, password } = new URL(target, home);
  const isOurs = origin === baseUrl && href.startsWith(home); // a blob: of our origin is no page of ours
  return isOurs && username === '' && password === '' && href.length <= LONGEST ? href : home;
}

/** Browsers drop tabs and line feeds from addresses, and parsers differ on the rest: none is honest. */
function hasControlCharacter(text: string): boolean {
  return Array.from(text).some((char) => char < ' ' || char === '\u007f');
}
