// Shows a notice about an act on the page that opens after it.

import { say } from './api.js';

/** The key of the notice in the session storage, in which it waits for the next page. */
const NOTICE = 'page-notice';

/** Keeps a notice, and opens a page that shows it. */
export function openWithNotice(text, address) {
  try {
    sessionStorage.setItem(NOTICE, text);
  } catch {
    // Without storage the page itself shows the change.
  }
  if (address === location.pathname + location.search) location.reload();
  else location.assign(address);
}

/** Shows the notice that an earlier page left. */
export function showNotice() {
  const region = document.querySelector('[data-page-notice]');
  let text = null;
  try {
    text = sessionStorage.getItem(NOTICE);
    sessionStorage.removeItem(NOTICE);
  } catch {
    return;
  }
  if (text === null || region === null) return;
  say(region, 'done', text);
  region.focus();
}
