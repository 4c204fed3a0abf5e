import { globSync, statSync } from 'node:fs';
import { resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');

/** A page of the documents, as the build renders it. */
interface RenderedPage {
  /** The path of its Markdown file in `docs`. */
  readonly path: string;
  /** The path of its URL at the service. */
  readonly address: string;
  readonly title: string;
  readonly html: string;
  readonly headings: readonly { readonly id: string }[];
  readonly targets: readonly {
    readonly href?: string;
    readonly page?: string;
    readonly anchor?: string;
    readonly file?: string;
    readonly source?: string;
  }[];
}

/** The pages of the documents and their menu, as the build renders them. */
interface RenderedDocuments {
  readonly pages: readonly RenderedPage[];
  readonly menu: readonly {
    readonly name: string;
    readonly links: readonly { readonly href: string; readonly text: string }[];
  }[];
}

interface Script {
  readonly renderDocuments: (folder?: string) => RenderedDocuments;
  readonly buildDocuments: () => void;
}

/**
 * Loads the script that renders the documents. The script is plain JavaScript, because the build
 * itself runs it.
 */
export function documentsScript(): Promise<Script> {
  const script = new URL('../../scripts/documents/build-documents.js', import.meta.url).href;
  return import(script) as Promise<Script>;
}

/** The files from which the documents are rendered. */
const SOURCES = [
  'docs/**/*',
  'scripts/documents/*.js',
  'src/features/pages/documents/manual/terms.ts',
];

/**
 * Renders the documents into `dist` as `npm run build` does. It does nothing if they are newer than
 * their sources.
 */
export async function buildDocuments(): Promise<void> {
  const built = statSync(resolve(ROOT, 'dist/documents/index.json'), { throwIfNoEntry: false });
  const times = globSync(SOURCES, { cwd: ROOT }).map(
    (file) => statSync(resolve(ROOT, file)).mtimeMs,
  );
  if (built !== undefined && built.mtimeMs > Math.max(...times)) return;
  const script = await documentsScript();
  script.buildDocuments();
}
