import { posix } from 'node:path';

/**
 * Returns the URL path of a page at the service. The README of a folder has the path of the folder.
 *
 * @param {string} page the path of the Markdown below `docs`
 */
export function addressOf(page) {
  const name = page.replace(/\.md$/, '').replace(/(?:^|\/)README$/, '');
  return name === '' ? '/docs' : `/docs/${name}`;
}

/**
 * Returns the anchor of a heading, by which links name it. The rule is that of GitHub: lower case,
 * hyphens, no punctuation.
 *
 * @param {string} heading the text of the heading
 */
export function anchorOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

/**
 * Finds the target of a link of a page.
 *
 * @param {string} href the link as the Markdown has it
 * @param {string} from the path of the page below `docs`
 * @param {{ pages: Set<string>, files: Set<string> }} site the paths below `docs` of all pages and
 *   of all other files
 * @returns {{ href?: string, page?: string, anchor?: string, file?: string, source?: string }}
 *   `href` is the link for the HTML of the page, and `page`, `anchor` or `file` is what it leads
 *   to. A target that the service does not serve has only `source`, its path in the repository
 */
export function targetOf(href, from, { pages, files }) {
  if (/^https?:/.test(href)) return { href };
  const [path = '', anchor] = href.split('#');
  const target = path === '' ? from : posix.join(posix.dirname(from), path);
  const page = [target, posix.join(target, 'README.md')].find((one) => pages.has(one));
  if (page !== undefined) {
    const address = page === from && anchor !== undefined ? '' : addressOf(page);
    return { href: anchor === undefined ? address : `${address}#${anchor}`, page, anchor };
  }
  if (files.has(target)) return { href: `/docs/files/${posix.basename(target)}`, file: target };
  return { source: posix.join('docs', target) };
}
