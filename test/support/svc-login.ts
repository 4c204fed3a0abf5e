import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import type { EnrolledUser, TestApp } from './app.js';
import { newAddress } from './client.js';
import type { SvcHome } from './svc-command.js';

/**
 * Installs a stand-in for `xdg-open` in a home folder. It opens no browser, but writes the address
 * into the file `opened` of that folder.
 */
export function keepOpened(home: SvcHome): void {
  const path = join(home.path, '.local/bin/xdg-open');
  const keep = 'printf "%s\\n" "$1" > "$HOME/opened.tmp" && mv "$HOME/opened.tmp" "$HOME/opened"';
  writeFileSync(path, `#!/bin/sh\n${keep}\n`);
  chmodSync(path, 0o755);
}

/**
 * Waits until the command has opened an address in the browser. Deletes the file with the address,
 * and returns the address.
 */
export async function openedAddress(home: SvcHome): Promise<URL> {
  const file = join(home.path, 'opened');
  await vi.waitFor(() => expect(existsSync(file)).toBe(true), { timeout: 90_000, interval: 25 });
  const address = new URL(readFileSync(file, 'utf8').trim());
  rmSync(file);
  return address;
}

/**
 * Opens an authorization request in a user's browser. The user touches the security key if a page
 * asks for it. Returns the address to which the server redirects the browser in the end.
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
