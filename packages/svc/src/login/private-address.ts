import { createServer } from 'node:http';
import { patience, randomText } from '../program/clock.js';
import { CliFailure } from '../program/failure.js';
import { openAddress } from './browser.js';
import { listen, targetOf } from './loopback.js';

/** The longest wait for the browser in milliseconds. */
const TIMEOUT = 60_000;

/**
 * Opens a secret URL in the user's browser. The browser gets a URL of this machine that redirects
 * once to the secret one, because other accounts can read the arguments of a program. If another
 * account reads the local URL and is quicker than the browser, that account gets the secret, and
 * the browser an error.
 *
 * @param otherwise the command that does without a browser
 * @throws CliFailure if no browser fetches the local URL within a minute
 */
export async function openPrivately(address: string, otherwise: string): Promise<void> {
  const path = `/${randomText()}`;
  const fetched = new EventTarget();
  const isFetched = new Promise<true>((resolve) => {
    fetched.addEventListener('fetched', () => resolve(true));
  });
  let isUsed = false;
  const server = createServer((request, response) => {
    const isRight = request.method === 'GET' && targetOf(request, server)?.pathname === path;
    const headers = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' };
    if (!isRight || isUsed) {
      response.writeHead(404, { ...headers, connection: 'close' }).end();
      return;
    }
    isUsed = true;
    response.once('close', () => fetched.dispatchEvent(new Event('fetched')));
    response.writeHead(302, { ...headers, location: address, connection: 'close' }).end();
  });
  const port = await listen(server, `Use: ${otherwise}`);
  openAddress(`http://127.0.0.1:${port}${path}`);
  const keepsRunning = setTimeout(() => {}, TIMEOUT);
  const outcome = await Promise.race([isFetched, patience(TIMEOUT)]);
  clearTimeout(keepsRunning);
  server.close();
  server.closeAllConnections();
  if (outcome === true) return;
  throw new CliFailure('No browser opened the URL in a minute.', `Use: ${otherwise}`);
}
