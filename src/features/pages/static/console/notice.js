// Shows a notice about what a page has done on the page that opens next.

import { say } from './api.js';

/** The key of the notice in the session storage, in which it waits for the next page. */
const NOTICE = 'page-notice';

/** Stores a notice, and opens a page that shows it. */
export function openWithNotice(text, address) {
  try {
    sessionStorage.setItem(NOTICE, text);
  } catch {
    // If the browser has no storage, there is no notice, but the next page shows the change itself.
  }
  if (address === location.pathname + location.search) location.reload();
  else location.assign(address);
}

/** Shows the notice that the previous page stored. */
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
