import { createHash } from 'node:crypto';

const STYLE = `
:root { color-scheme: light dark; --ink: light-dark(#1d2430, #e8ebf0); --paper: light-dark(#f3f4f7, #14181f);
  --card: light-dark(#fff, #1d232d); --line: light-dark(#767e8c, #8d96a5); --accent: light-dark(#4a3aa8, #b3a8ff);
  --on-accent: light-dark(#fff, #14181f); --alert: light-dark(#a3172c, #ff9aa8); }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main { width: min(26rem, 100%); padding: 2rem; background: var(--card); border-radius: 12px;
  box-shadow: 0 1px 3px rgb(0 0 0 / 25%); }
h1 { margin: 0 0 .5rem; font-size: 1.4rem; }
p { margin: 0 0 1rem; }
label { display: block; font-weight: 600; margin-bottom: .25rem; }
input, button { width: 100%; padding: .6rem .75rem; border-radius: 8px; font: inherit; }
input { border: 1px solid var(--line); background: transparent; color: inherit; }
button { border: 0; background: var(--accent); color: var(--on-accent); font-weight: 600; cursor: pointer; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
[role=alert] { color: var(--alert); }
[role=alert]:empty { display: none; }
`;

const styleHash = createHash('sha256').update(STYLE).digest('base64');

/** The headers of the provider's pages: they allow only the own style, and forbid caching. */
export const PAGE_HEADERS = {
  'content-security-policy':
    `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; ` +
    "frame-ancestors 'none'",
  'cache-control': 'no-store',
};

/** Renders the page that asks for an e-mail address. @param problem empty at the first try */
export function signInPage(problem: string): string {
  return layout(`
      <p>It stands in for your company's: it asks no password and believes any address.</p>
      <form method="post">
        <p>
          <label for="email">E-mail</label>
          <input id="email" name="email" type="email" required autofocus autocomplete="email">
        </p>
        <p role="alert">${problem}</p>
        <button type="submit">Sign in</button>
      </form>`);
}

/** Renders a page with one sentence, without its markup. */
export function messagePage(message: string): string {
  return layout(`
      <p role="alert">${message.replaceAll(/[<>&]/g, '')}</p>`);
}

function layout(content: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Demo identity provider</title>
    <style>${STYLE}</style>
  </head>
  <body>
    <main>
      <h1>Demo identity provider</h1>${content}
    </main>
  </body>
</html>
`;
}
