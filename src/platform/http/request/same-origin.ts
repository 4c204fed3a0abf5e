/**
 * The largest number of characters in the URL to which a browser goes after a login. The URL has to
 * fit into queries and headers.
 */
const LONGEST = 2048;

/**
 * Returns the URL to which a browser goes after a login. It is the requested URL, if that leads to
 * our own origin, or else the start page. The result is absolute, because a browser takes a path
 * such as `//evil` for another origin.
 *
 * @param target the path or URL that the client requested; it is not trusted
 * @param baseUrl our own origin
 */
export function sameOriginTarget(target: string | undefined, baseUrl: string): string {
  const home = `${baseUrl}/`;
  if (target === undefined || hasControlCharacter(target) || !URL.canParse(target, home)) {
    return home;
  }
  const { origin, href, username, password } = new URL(target, home);
  // A `blob:` URL has our origin and is still none of our pages, so the start of the URL is checked
  // as well.
  const isOurs = origin === baseUrl && href.startsWith(home);
  return isOurs && username === '' && password === '' && href.length <= LONGEST ? href : home;
}

/**
 * Returns true for a text with control characters. Browsers drop some of them from URLs, and
 * parsers differ on the others.
 */
function hasControlCharacter(text: string): boolean {
  return Array.from(text).some((char) => char < ' ' || char === '\u007f');
}
