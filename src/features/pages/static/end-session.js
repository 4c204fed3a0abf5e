// The script of the logout page. It opens the next address itself, because the
// Content-Security-Policy forbids a form to redirect to a client.

import { say } from './api.js';

for (const form of document.querySelectorAll('form[data-end-session]')) {
  const status = form.querySelector('[data-status]');
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void endSession(form, status);
  });
  if ('atOnce' in form.dataset) form.requestSubmit();
}

async function endSession(form, status) {
  say(status, 'waiting', 'One moment…');
  const answer = await fetch(form.action, {
    method: 'POST',
    headers: { accept: 'application/json' },
    body: new URLSearchParams(new FormData(form)),
  }).catch(() => undefined);
  const { location: next } = (await answer?.json().catch(() => undefined)) ?? {};
  if (next) location.assign(next);
  else say(status, 'error', 'Logging out did not work. Reload the page and try again.');
}
