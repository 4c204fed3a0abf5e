import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { readStaticFiles, type StaticFile } from '../../shell/static-files.js';
import { searchPages, type FoundPage, type SearchIndex } from './search.js';

/** A link of the menu. */
interface MenuLink {
  readonly href: string;
  readonly text: string;
}

/** A group of links of the menu. The file `docs/README.md` defines the groups. */
interface MenuGroup {
  readonly name: string;
  readonly links: readonly MenuLink[];
}

/** A page in the index of all pages. */
interface IndexedPage {
  readonly title: string;
  /** The name of the file below `pages/` with the HTML of the page. */
  readonly file: string;
  /** The parts of the page: its headings of the second level. */
  readonly parts: readonly MenuLink[];
}

/** The list of all pages, which the build makes. */
interface ManualIndex {
  readonly menu: readonly MenuGroup[];
  readonly pages: Readonly<Record<string, IndexedPage>>;
}

/** A page with its title, its headings and its HTML. */
interface ManualPage extends IndexedPage {
  readonly html: string;
}

/** The most pages that one search returns. */
const MOST_FOUND = 10;

/**
 * The folder into which the build renders the documents (`scripts/documents`). The path goes up to
 * the root of the project. It is the same for a source in `src` and for its compiled module in
 * `dist`, because both are equally deep below the root.
 */
const BUILT = new URL('../../../../../dist/documents/', import.meta.url);

/**
 * The documents of `docs/`, as the build rendered them. The index of the pages, the index of the
 * search and the images are read at their first use and stay in memory. The HTML of a page is read
 * for each request.
 */
export class Manual {
  #index: ManualIndex | undefined;
  #search: SearchIndex | undefined;
  #files: ReadonlyMap<string, StaticFile> | undefined;

  constructor(private readonly folder = BUILT) {}

  /** Returns the menu, which leads to every page. */
  menu(): readonly MenuGroup[] {
    return this.#pages().menu;
  }

  /**
   * Returns a page by its path, such as `/docs/guides/backup`.
   * @returns undefined if there is no such page
   */
  async page(address: string): Promise<ManualPage | undefined> {
    const { pages } = this.#pages();
    const page = Object.hasOwn(pages, address) ? pages[address] : undefined;
    if (!page) return undefined;
    const html = await readFile(new URL(`pages/${page.file}`, this.folder), 'utf8');
    return { ...page, html };
  }

  /** Returns an image or another file that a page shows, by its name; undefined if none has it. */
  file(name: string): StaticFile | undefined {
    this.#files ??= readStaticFiles(new URL('files/', this.folder));
    return this.#files.get(name);
  }

  /** Finds at most ten pages that fit a question, the best first. */
  search(question: string): FoundPage[] {
    this.#search ??= this.#read('search.json') as SearchIndex;
    return searchPages(this.#search, question, MOST_FOUND);
  }

  #pages(): ManualIndex {
    this.#index ??= this.#read('index.json') as ManualIndex;
    return this.#index;
  }

  #read(name: string): unknown {
    return JSON.parse(readFileSync(new URL(name, this.folder), 'utf8'));
  }
}
