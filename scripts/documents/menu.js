import { Marked } from 'marked';
import { addressOf, targetOf } from './addresses.js';

/**
 * Reads the menu from the map of the documents. Each heading of the second level is a group, and
 * the links below it to pages are the links of the group.
 *
 * @param {string} map the Markdown of `docs/README.md`
 * @param {{ pages: Set<string>, files: Set<string> }} site the paths below `docs` of all pages and
 *   of all other files
 * @returns {{ name: string, links: { href: string, text: string }[] }[]}
 */
export function menuOf(map, site) {
  const groups = [];
  const marked = new Marked();
  for (const token of marked.lexer(map)) {
    if (token.type === 'heading' && token.depth === 2) groups.push({ name: token.text, links: [] });
    if (groups.length === 0) continue;
    void marked.walkTokens([token], (one) => {
      if (one.type !== 'link') return;
      const { page, anchor } = targetOf(one.href, 'README.md', site);
      if (page === undefined || anchor !== undefined) return;
      const text = one.text.replaceAll('`', '').replaceAll(/\s+/g, ' ');
      groups.at(-1).links.push({ href: addressOf(page), text });
    });
  }
  return groups;
}
