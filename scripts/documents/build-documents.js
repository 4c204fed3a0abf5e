import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join, relative, resolve, sep } from 'node:path';
import { addressOf } from './addresses.js';
import { menuOf } from './menu.js';
import { renderPage } from './render-page.js';
import { searchIndexOf } from './search-index.js';

const ROOT = resolve(import.meta.dirname, '../..');

/** The folder of the documents. */
const DOCUMENTS = join(ROOT, 'docs');

/** The folder from which the server reads the rendered documents. */
const OUTPUTS = join(ROOT, 'dist/documents');

/**
 * Renders every page of the documents, and makes their menu and their search index.
 *
 * @param {string} [folder] the folder of the Markdown
 */
export function renderDocuments(folder = DOCUMENTS) {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .toSorted();
  const site = {
    pages: new Set(paths.filter((path) => path.endsWith('.md'))),
    files: new Set(paths.filter((path) => !path.endsWith('.md'))),
  };
  const read = (path) => readFileSync(join(folder, path), 'utf8');
  const pages = [...site.pages].map((path) => ({
    path,
    address: addressOf(path),
    ...renderPage(path, read(path), site),
  }));
  expectUnique(pages.map(({ address }) => address));
  const files = [
    ...new Set(pages.flatMap(({ targets }) => targets.flatMap(({ file }) => file ?? []))),
  ];
  expectUnique(files.map((file) => basename(file)));
  const sections = pages.flatMap((page) =>
    page.sections.map((section) => ({ page: page.address, title: page.title, ...section })),
  );
  return { pages, files, menu: menuOf(read('README.md'), site), search: searchIndexOf(sections) };
}

/**
 * Renders the documents into the folder from which the server reads them. The folder is replaced as
 * a whole.
 *
 * @param {{ from?: string, to?: string }} [folders] the folder of the Markdown, and that of the
 *   result
 */
export function buildDocuments({ from = DOCUMENTS, to = OUTPUTS } = {}) {
  const { pages, files, menu, search } = renderDocuments(from);
  const made = `${to}-new`;
  rmSync(made, { recursive: true, force: true });
  for (const name of ['pages', 'files']) mkdirSync(join(made, name), { recursive: true });
  for (const { file, html } of pages.map(namedPage)) writeFileSync(join(made, 'pages', file), html);
  for (const file of files) copyFileSync(join(from, file), join(made, 'files', basename(file)));
  const listed = pages.map((page) => [page.address, listedPage(page)]);
  writeFileSync(
    join(made, 'index.json'),
    JSON.stringify({ menu, pages: Object.fromEntries(listed) }),
  );
  writeFileSync(join(made, 'search.json'), JSON.stringify(search));
  rmSync(to, { recursive: true, force: true });
  renameSync(made, to);
}

/** Returns a page with the name of the file of its HTML. */
function namedPage(page) {
  return { ...page, file: `${page.path.replace(/\.md$/, '').replaceAll('/', '--')}.html` };
}

/** Returns what the server knows of a page before it reads its HTML. */
function listedPage(page) {
  const { title, file, headings } = namedPage(page);
  const parts = headings.filter(({ depth }) => depth === 2);
  return { title, file, parts: parts.map(({ id, text }) => ({ href: `#${id}`, text })) };
}

function expectUnique(names) {
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`two documents have the name ${twice}`);
}
