import { spawn } from 'node:child_process';
import type { Terminal } from '../terminal/terminal.js';

/**
 * Opens the login page in the user's browser. It also prints the URL, because the machine may have
 * no browser.
 */
export function openLoginPage(url: string, terminal: Terminal): void {
  terminal.warn('Log in with your security key in the browser. If none opens, open this address:');
  terminal.warn(`  ${url}`);
  openAddress(url);
}

/** Opens a URL in the user's browser. If there is no browser, it does nothing. */
export function openAddress(url: string): void {
  const [program, ...args] = opener();
  try {
    const child = spawn(program, [...args, url], { detached: true, stdio: 'ignore' });
    child.once('error', () => {}); // the caller tells the user what to do
    child.unref();
  } catch {
    // Every caller tells the user what to do without a browser.
  }
}

function opener(): [program: string, ...args: string[]] {
  if (process.platform === 'darwin') return ['open'];
  if (process.platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler'];
  return ['xdg-open'];
}
