import { Markup, markup } from '@svc/markup';

/** A page of the service, as a browser showed it. */
export interface PicturedPage {
  readonly caption: string;
  /** The text of the page. */
  readonly text: string;
  /** The size of the screenshots in CSS pixels. */
  readonly width: number;
  readonly height: number;
  /** The screenshot of the page in each color scheme, as PNG. */
  readonly images: Readonly<Record<ColorScheme, Buffer>>;
}

/** The color schemes that a viewer of the picture may have set. */
export const COLOR_SCHEMES = ['light', 'dark'] as const;
export type ColorScheme = (typeof COLOR_SCHEMES)[number];

/**
 * The lines of a terminal. Commands begin with `$ `, and comments with `# `. Other lines are
 * output.
 */
export interface PicturedTerminal {
  readonly caption: string;
  readonly lines: readonly string[];
}

const GAP = 20;
const CAPTION = 30;
/** The width of the page in the picture, in pixels. The images of the page are larger. */
const PAGE_WIDTH = 310;
/** The width of the terminals in letters, and of a letter in pixels. */
const COLUMNS = 80;
const LETTER = 7.4;
const LINE = 19;
const INSET = 14;
const TERMINAL_WIDTH = Math.ceil(COLUMNS * LETTER) + 2 * INSET;
const TERMINAL_LEFT = 2 * GAP + PAGE_WIDTH;
export const PICTURE_WIDTH = TERMINAL_LEFT + TERMINAL_WIDTH + GAP;

/**
 * The style sheet of the picture. It sets a background too, so that the picture is readable on a
 * light and on a dark page.
 */
const STYLE = new Markup(`
  text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace; white-space: pre; fill: #d0d7de }
  .caption { font: 600 15px system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif; fill: #1f2328 }
  .ground { fill: #f6f8fa; stroke: #d0d7de }
  .terminal { fill: #0d1117; stroke: #57606a }
  .frame { fill: none; stroke: #57606a }
  .command { fill: #ffffff; font-weight: 700 }
  .comment { fill: #9ba5b0 }
  .refused { fill: #ff9492 }
  .dark { display: none }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #161b22; stroke: #57606a }
    .caption { fill: #f0f6fc }
    .light { display: none }
    .dark { display: inline }
  }
`);

/**
 * Breaks a line at spaces into lines of at most `columns` letters, the width of the picture's
 * terminal by default.
 */
export function wrapped(line: string, columns = COLUMNS): string[] {
  if (line.length <= columns) return [line];
  const space = line.lastIndexOf(' ', columns);
  const end = space > 0 ? space : columns;
  return [line.slice(0, end), ...wrapped(line.slice(end).trimStart(), columns)];
}

/**
 * Draws a page and terminals as SVG. Equal input always gives equal text, so that a test can
 * compare it with the file in the project.
 */
export function drawnPicture(
  description: string,
  page: PicturedPage,
  terminals: readonly PicturedTerminal[],
): string {
  const drawings: Markup[] = [];
  let top = GAP;
  for (const terminal of terminals) {
    const { drawing, height } = drawnTerminal(terminal, top);
    drawings.push(drawing);
    top += height + GAP;
  }
  const pageHeight = Math.round((page.height / page.width) * PAGE_WIDTH);
  const height = Math.max(top, 2 * GAP + CAPTION + pageHeight);
  return `${String(markup`<svg xmlns="http://www.w3.org/2000/svg" width="${PICTURE_WIDTH}" height="${height}" viewBox="0 0 ${PICTURE_WIDTH} ${height}" role="img">
<title>${description}</title>
<style>${STYLE}</style>
<rect class="ground" x="0.5" y="0.5" width="${PICTURE_WIDTH - 1}" height="${height - 1}" rx="10"/>
${drawnPage(page, pageHeight)}
${drawings}</svg>`)}\n`;
}

function drawnPage({ caption, text, images }: PicturedPage, height: number): Markup {
  const place = markup`x="${GAP}" y="${GAP + CAPTION}" width="${PAGE_WIDTH}" height="${height}"`;
  const shown = COLOR_SCHEMES.map(
    (scheme) =>
      markup`<image class="${scheme}" ${place} href="data:image/png;base64,${images[scheme].toString('base64')}"/>\n`,
  );
  return markup`<g>
<desc>${text}</desc>
<text class="caption" x="${GAP}" y="${GAP + 16}">${caption}</text>
${shown}<rect class="frame" ${place}/>
</g>`;
}

function drawnTerminal({ caption, lines }: PicturedTerminal, top: number) {
  const rows = lines.flatMap((line) => wrapped(line).map((text) => ({ text, kind: kindOf(line) })));
  const height = rows.length * LINE + 2 * INSET;
  const left = TERMINAL_LEFT + INSET;
  const first = top + CAPTION + INSET + 13;
  const texts = rows.map(
    ({ text, kind }, row) =>
      markup`<text class="${kind}" x="${left}" y="${first + row * LINE}">${text}</text>\n`,
  );
  const drawing = markup`<g>
<text class="caption" x="${TERMINAL_LEFT}" y="${top + 16}">${caption}</text>
<rect class="terminal" x="${TERMINAL_LEFT}" y="${top + CAPTION}" width="${TERMINAL_WIDTH}" height="${height}" rx="6"/>
${texts}</g>
`;
  return { drawing, height: height + CAPTION };
}

function kindOf(line: string): string {
  if (line.startsWith('$ ')) return 'command';
  if (line.startsWith('# ')) return 'comment';
  return /^svc: |Permission denied/.test(line) ? 'refused' : 'output';
}

/** Returns the screenshots of the page in the SVG text of a picture. */
export function imagesIn(picture: string): Record<ColorScheme, Buffer> {
  const read = (scheme: ColorScheme) => {
    const data = new RegExp(`<image class="${scheme}"[^>]*base64,([^"]+)"`).exec(picture)?.[1];
    if (data === undefined) throw new Error(`the picture has no image of the ${scheme} mode`);
    return Buffer.from(data, 'base64');
  };
  return { light: read('light'), dark: read('dark') };
}
