import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { Markup, markup } from '@svc/markup';

const STYLE = `
:root { color-scheme: light dark; --ink: light-dark(#1d2430, #e8ebf0); --paper: light-dark(#f3f4f7, #14181f);
  --card: light-dark(#fff, #1d232d); --line: light-dark(#767e8c, #8d96a5); --accent: light-dark(#4a3aa8, #b3a8ff);
  --on-accent: light-dark(#fff, #14181f); --alert: light-dark(#a3172c, #ff9aa8); }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { width: min(30rem, 100%); padding: 2rem; background: var(--card); border-radius: 12px;
  box-shadow: 0 1px 3px rgb(0 0 0 / 25%); }
h1 { margin: 0 0 .5rem; font-size: 1.4rem; }
h2 { margin: 1.5rem 0 .5rem; font-size: 1.1rem; }
p { margin: 0 0 1rem; }
a { color: var(--accent); }
label { display: block; font-weight: 600; margin-bottom: .25rem; }
input, button, .button { display: block; width: 100%; padding: .6rem .75rem; border-radius: 8px; font: inherit; }
input { border: 1px solid var(--line); background: transparent; color: inherit; }
button, .button { border: 1px solid var(--accent); background: var(--accent); color: var(--on-accent); font-weight: 600;
  cursor: pointer; text-align: center; text-decoration: none; }
.plain { margin-bottom: .5rem; background: transparent; color: inherit; border-color: var(--line); text-align: left;
  font-weight: 400; }
dl { display: grid; grid-template-columns: minmax(7rem, auto) 1fr; gap: .25rem 1rem; margin: 0 0 1rem; }
dt { font-weight: 600; }
dd { margin: 0; min-width: 0; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
[role=alert] { color: var(--alert); }
[role=alert]:empty { display: none; }
`;

const styleHash = createHash('sha256').update(STYLE).digest('base64');

/** A simple page, for servers of the demo other than the service itself. */
export interface PlainPage {
  readonly title: string;
  readonly content: Markup;
  /** The URL of a script of the page, on the same server. */
  readonly script?: string;
}

/**
 * Sends a page. Its headers allow only the page's own style and scripts of the same server, and
 * forbid caching.
 */
export function sendPlainPage(
  response: ServerResponse,
  status: number,
  page: PlainPage,
  headers: Readonly<Record<string, string | string[]>> = {},
): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    ...PLAIN_PAGE_HEADERS,
    ...headers,
  });
  response.end(renderPlainPage(page));
}

/** The headers of a plain page. They forbid caching, and scripts and styles of other servers. */
export const PLAIN_PAGE_HEADERS = {
  'content-security-policy':
    `default-src 'none'; style-src 'sha256-${styleHash}'; script-src 'self'; connect-src 'self'; base-uri 'none'; ` +
    "frame-ancestors 'none'",
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** Renders a page as an HTML document. */
export function renderPlainPage({ title, content, script }: PlainPage): string {
  const scripts =
    script === undefined ? '' : markup`\n    <script type="module" src="${script}"></script>`;
  return markup`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${title}</title>
    <style>${new Markup(STYLE)}</style>${scripts}
  </head>
  <body>
    <main>
      <h1>${title}</h1>${content}
    </main>
  </body>
</html>
`.text;
}
