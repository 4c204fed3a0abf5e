import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CliFailure, STATUS } from '../program/failure.js';
import { printable } from '../terminal/table.js';

/** The path of the redirect URI that is registered at the server. */
const PATH = '/callback';

/** The longest wait for the browser in milliseconds. */
const TIMEOUT = 5 * 60_000;

/** The values that the answer in the browser's request must have. */
export interface ExpectedAnswer {
  readonly state: string;
  /** The issuer that must be named in the answer (RFC 9207). */
  readonly issuer: string;
}

/** A server on a port of 127.0.0.1 that waits for the browser to bring the answer of a login. */
export interface Loopback {
  readonly redirectUri: string;
  /** Resolves with the authorization code. */
  readonly code: Promise<string>;
  close(): void;
}

/**
 * Listens on a random port of 127.0.0.1 until the browser brings the answer of one login (RFC 8252
 * §7.3).
 */
export async function listenForAnswer(expected: ExpectedAnswer): Promise<Loopback> {
  const { promise: code, resolve, reject } = settled<string>();
  let isAnswered = false;
  const server = createServer((request, response) => {
    const url = targetOf(request, server);
    const problem = url ? problemOf(request, url, expected, isAnswered) : 'This is no URL.';
    if (!url || problem !== undefined) {
      sendPage(response, url?.pathname === PATH ? 400 : 404, 'Not this URL', problem ?? '');
      return;
    }
    isAnswered = true;
    const { searchParams } = url;
    const found = searchParams.get('code');
    if (found === null) {
      const reason = printable(searchParams.get('error_description') ?? 'The login was refused.');
      sendPage(response, 200, 'Not logged in', `${reason} You can close this window.`);
      reject(new CliFailure(`Not logged in: ${reason}`, 'Run svc login again.', STATUS.refused));
    } else {
      sendPage(response, 200, 'Logged in', 'You can close this window.');
      resolve(found);
    }
  });
  const timer = setTimeout(() => {
    reject(new CliFailure('The browser did not answer in 5 minutes.', 'Run svc login again.'));
  }, TIMEOUT);
  const port = await listen(server, 'Use: svc login --device');
  return {
    redirectUri: `http://127.0.0.1:${port}${PATH}`,
    code,
    close: () => {
      clearTimeout(timer);
      server.close();
      // Connections are closed only after a moment, because the page must still reach the browser.
      // A browser may also keep connections open that it never uses.
      server.closeIdleConnections();
      setTimeout(() => server.closeAllConnections(), 500).unref();
    },
  };
}

function settled<T>() {
  const settle = {} as { resolve: (value: T) => void; reject: (error: Error) => void };
  const promise = new Promise<T>((resolve, reject) => {
    Object.assign(settle, { resolve, reject });
  });
  promise.catch(() => {}); // a rejection before the login awaits it must not end the process
  return { promise, ...settle };
}

/**
 * Lets a server listen on a free port of 127.0.0.1, and returns the port.
 *
 * @param whatToDo the next step of the user if no port can be opened
 */
export function listen(server: Server, whatToDo: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const message = 'No port of 127.0.0.1 can be opened.';
      reject(new CliFailure(message, whatToDo, STATUS.failed, { cause }));
    });
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

/**
 * Returns the URL of a request; undefined if its host is not 127.0.0.1. Such a request is refused,
 * because a page of an attacker may have a name that resolves to 127.0.0.1.
 */
export function targetOf({ url = '', headers }: IncomingMessage, server: Server): URL | undefined {
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo | null)?.port}`;
  if (`http://${headers.host}` !== origin || !url.startsWith('/')) return undefined;
  try {
    return new URL(`${origin}${url}`);
  } catch {
    return undefined;
  }
}

/** Returns the reason why a request is not the expected answer of the login; undefined if it is. */
function problemOf(
  { method }: IncomingMessage,
  { pathname, searchParams }: URL,
  { state, issuer }: ExpectedAnswer,
  isAnswered: boolean,
): string | undefined {
  if (pathname !== PATH || method !== 'GET') return 'Only the login comes to this URL.';
  if (isAnswered) return 'The login has ended.';
  if (searchParams.get('state') !== state) return 'This answer belongs to another login.';
  if (searchParams.get('iss') !== issuer) return 'This answer is of another server.';
  const isAnswer = searchParams.has('code') || searchParams.has('error');
  return isAnswer ? undefined : 'This answer is empty.';
}

/** The style of the page, which looks like the pages of the service in light and in dark. */
const STYLE = `:root{color-scheme:light dark;--page:#f5f6f8;--surface:#fff;--text:#171a21;--muted:#555d6b;--line:#d9dde4}
@media(prefers-color-scheme:dark){:root{--page:#0f1217;--surface:#181c24;--text:#e9ebf0;--muted:#a4acba;--line:#2b313c}}
body{margin:0;padding:12vh 1.25rem;background:var(--page);color:var(--text);font:1rem/1.6 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;overflow-wrap:anywhere}
main{max-width:30rem;margin:0 auto;padding:2rem;border:1px solid var(--line);border-radius:.75rem;background:var(--surface)}
h1{margin:0;font-size:1.625rem;line-height:1.2}
p{margin:.75rem 0 0;color:var(--muted)}`;

/** The hash by which the Content-Security-Policy allows {@link STYLE} and no other style. */
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** Sends a page without scripts. Text from the request is escaped. */
function sendPage(response: ServerResponse, status: number, title: string, text: string): void {
  const escaped = text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'`,
    'referrer-policy': 'no-referrer',
    connection: 'close',
  });
  response.end(
    `<!doctype html><html lang="en"><head><meta charset="utf-8">` +
      `<meta name="viewport" content="width=device-width, initial-scale=1">` +
      `<meta name="color-scheme" content="light dark"><title>${title} · svc</title>` +
      `<style>${STYLE}</style></head>` +
      `<body><main><h1>${title}</h1><p>${escaped}</p></main></body></html>\n`,
  );
}
