// The script of the pages on which an admin replaces a SCIM token or an API token. It shows when
// the new token is used. Without this script the admin clicks "Look again".

import { say, sendJson } from './api.js';
import { localTime } from './page.js';

/** The milliseconds between two requests for the state of the token, if the page is visible. */
const INTERVAL = 3000;

const status = document.querySelector('[data-rotation]');
if (status) {
  say(status, 'waiting', 'Waiting for the first use of the new token.');
  const timer = setInterval(() => {
    if (!document.hidden) void look(timer);
  }, INTERVAL);
}

async function look(timer) {
  let tokens;
  try {
    ({ tokens } = await sendJson('GET', status.dataset.tokens));
  } catch {
    return; // The next look may succeed; the link on the page works in any case.
  }
  for (const token of tokens) showUse(token);
  const added = tokens.find(({ id }) => id === status.dataset.rotation);
  if (added && added.last_used_at === null) return;
  clearInterval(timer);
  if (!added) {
    location.reload(); // the new token has ended meanwhile
    return;
  }
  document.querySelector('[data-unused]')?.remove();
  say(status, 'done', 'The new token is in use. You can end the old one.');
}

function showUse({ id, last_used_at: at }) {
  const place = document.querySelector(`[data-last-used="${id}"]`);
  if (place && at !== null) place.textContent = localTime(at);
}
