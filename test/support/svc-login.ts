import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import type { EnrolledUser, TestApp } from './app.js';
import { newAddress } from './client.js';
import type { SvcHome } from './svc-command.js';

/**
 * Installs `xdg-open` in a home folder. Instead of opening a browser it writes the address into a
 * file.
 */
export function keepOpened(home: SvcHome): void {
  const path = join(home.path, '.local/bin/xdg-open');
  const keep = 'printf "%s\\n" "$1" > "$HOME/opened.tmp" && mv "$HOME/opened.tmp" "$HOME/opened"';
  writeFileSync(path, `#!/bin/sh\n${keep}\n`);
  chmodSync(path, 0o755);
}

/**
 * Waits for the address that the command opens in the browser, returns it, and deletes the file
 * with it.
 */
export async function openedAddress(home: SvcHome): Promise<URL> {
  const file = join(home.path, 'opened');
  await vi.waitFor(() => expect(existsSync(file)).toBe(true), { timeout: 30_000, interval: 25 });
  const address = new URL(readFileSync(file, 'utf8').trim());
  rmSync(file);
  return address;
}

/**
 * Follows an authorization request with the browser of a user, who touches the security key where
 * it is asked for. Returns the address at which the browser leaves the server.
 */
export async function answerOf(
  { baseUrl }: Pick<TestApp, 'baseUrl'>,
  user: EnrolledUser,
  address: URL,
): Promise<URL> {
  let next = address.href;
  for (let hops = 0; hops < 8; hops += 1) {
    const answer = await user.client.get(next, { address: newAddress() });
    const location = answer.headers.get('location');
    if (location === null) throw new Error(`${next} answered ${answer.status}`);
    const url = new URL(location, baseUrl);
    if (url.origin !== baseUrl) return url;
    if (url.pathname === '/login') await user.client.logIn(user.key, { address: newAddress() });
    next = url.pathname === '/login' ? (url.searchParams.get('redirect_to') ?? '/') : url.href;
  }
  throw new Error('too many redirects');
}
