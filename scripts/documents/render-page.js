import { Marked } from 'marked';
import { anchorOf, targetOf } from './addresses.js';

const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Escapes a text for HTML, in an element or in an attribute in quotes. */
function escaped(text) {
  return text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character]);
}

/**
 * The Markdown of the documents. A bare URL is no link, because most of them are examples such as
 * `https://login.example.com`.
 */
const markdown = new Marked({ gfm: true, tokenizer: { url: () => undefined } });

/**
 * Renders a page.
 *
 * @param {string} page the path of the Markdown below `docs`
 * @param {string} text the Markdown
 * @param {{ pages: Set<string>, files: Set<string> }} site the paths below `docs` of all pages and
 *   of all other files
 * @returns {{ title: string, html: string, headings: { depth: number, id: string, text: string }[],
 *   sections: { anchor: string, heading: string, text: string, names: string }[],
 *   targets: object[] }} the HTML with its headings, the sections for the search, and the targets
 *   of all links and images
 */
export function renderPage(page, text, site) {
  const tokens = markdown.lexer(text);
  const headings = headingsOf(tokens);
  const targets = [];
  const find = (href) => {
    const target = targetOf(href, page, site);
    targets.push(target);
    return target;
  };
  const ids = headings.map(({ id }) => id);
  const renderer = rendererOf(find, ids);
  const html = new Marked({ renderer }).parser(tokens);
  const title = headings.find(({ depth }) => depth === 1)?.text;
  if (title === undefined) throw new Error(`docs/${page} has no title`);
  return { title, html, headings, sections: sectionsOf(tokens, headings), targets };
}

/** Returns the headings of a page. A heading that occurs again gets a number, as on GitHub. */
function headingsOf(tokens) {
  const seen = new Map();
  return tokens
    .filter(({ type }) => type === 'heading')
    .map((token) => {
      const text = textOf([token]);
      const anchor = anchorOf(text);
      const before = seen.get(anchor) ?? 0;
      seen.set(anchor, before + 1);
      return { depth: token.depth, id: before === 0 ? anchor : `${anchor}-${before}`, text };
    });
}

/**
 * Returns the functions that write the HTML of each kind of token. Raw HTML is shown as text.
 *
 * @param find returns the target of a link
 * @param ids the ids of the headings, in their order
 */
function rendererOf(find, ids) {
  const remaining = [...ids];
  return {
    html: ({ text }) => escaped(text),
    code: ({ text, lang = '' }) => {
      const language = /^[\w-]+/.exec(lang)?.[0];
      const named = language === undefined ? '' : ` class="language-${language}"`;
      return `<pre tabindex="0"><code${named}>${escaped(text)}</code></pre>\n`;
    },
    heading({ tokens, depth }) {
      const id = escaped(remaining.shift() ?? '');
      const content = this.parser.parseInline(tokens);
      if (depth === 1) return `<h1 id="${id}">${content}</h1>\n`;
      return `<h${depth} id="${id}"><a href="#${id}">${content}</a></h${depth}>\n`;
    },
    link({ href, tokens }) {
      const content = this.parser.parseInline(tokens);
      const target = find(href);
      if (target.href === undefined) return `${content} (<code>${escaped(target.source)}</code>)`;
      return `<a href="${escaped(target.href)}">${content}</a>`;
    },
    image({ href, text }) {
      const target = find(href);
      if (target.file === undefined) throw new Error(`the image ${href} is no file of docs`);
      return `<img src="${escaped(target.href)}" alt="${escaped(text)}" loading="lazy">`;
    },
    table({ header, rows }) {
      const labels = header.map(({ tokens }) => textOf(tokens));
      const inline = ({ tokens }) => this.parser.parseInline(tokens);
      const head = header.map((cell) => `<th scope="col">${inline(cell)}</th>`).join('');
      const body = rows.map((row) => `<tr>${cellsOf(row.map(inline), labels)}</tr>\n`).join('');
      return `<table class="table">\n<thead><tr>${head}</tr></thead>\n<tbody>\n${body}</tbody></table>\n`;
    },
  };
}

/**
 * Writes the cells of a row. The first one is the heading of the row; on a narrow screen, the
 * others show the heading of their column.
 */
function cellsOf([first = '', ...others], [, ...labels]) {
  const cells = others.map(
    (cell, i) => `<td data-label="${escaped(labels[i] ?? '')}">${cell}</td>`,
  );
  return `<th scope="row">${first}</th>${cells.join('')}`;
}

/**
 * The number of characters after which a part of a section ends. The text after it becomes a new
 * part, which the search finds by itself.
 */
const LONG = 600;

/**
 * Divides a page into sections for the search, as plain text. A long section becomes several parts
 * with one heading, so that a word in a list of a hundred items is found at its item.
 */
function sectionsOf(tokens, headings) {
  const remaining = [...headings];
  const sections = [];
  for (const token of tokens) {
    if (token.type === 'heading') {
      const { id, text, depth } = remaining.shift();
      sections.push({ anchor: depth === 1 ? '' : id, heading: text, text: '', names: '' });
      continue;
    }
    for (const { text, name } of piecesOf(token)) {
      const last = sections.at(-1);
      if (last === undefined) continue;
      if (last.text.length > LONG) sections.push({ ...last, text: '', names: '' });
      sections.at(-1).text += `${text}\n`;
      sections.at(-1).names += `${name}\n`;
    }
  }
  return sections;
}

/**
 * Returns the texts of a block: one for each item of a list or row of a table. `name` is the code
 * with which the item or row begins, such as a variable; otherwise it is empty.
 */
function piecesOf(token) {
  if (token.type === 'list') {
    return token.items.map((item) => ({ text: textOfOne(item), name: nameIn(item.tokens) }));
  }
  if (token.type === 'table') {
    return token.rows.map((row) => ({
      text: row.map(textOfOne).join(' '),
      name: nameIn(row[0].tokens),
    }));
  }
  const text = textOf([token]);
  return text.trim() === '' ? [] : [{ text, name: '' }];
}

/** Returns the code with which inline tokens begin, or an empty text. */
function nameIn([first] = []) {
  if (first?.type === 'codespan') return unescaped(first.text);
  return first?.tokens ? nameIn(first.tokens) : '';
}

/** Returns the text of tokens without markup. */
function textOf(tokens) {
  return tokens
    .map((token) => {
      if (token.type === 'table') {
        return [token.header, ...token.rows].flat().map(textOfOne).join(' ');
      }
      if (token.type === 'list') return token.items.map(textOfOne).join('\n');
      if (token.type === 'space') return ' ';
      return textOfOne(token);
    })
    .join('');
}

function textOfOne({ tokens, text = '' }) {
  return tokens === undefined ? unescaped(text) : textOf(tokens);
}

/** Undoes the escapes that `marked` writes into the text of some tokens. */
function unescaped(text) {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
}
