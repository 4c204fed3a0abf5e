// Sends the forms of a page to the JSON API: `<form data-send="POST /api/v1/org/…">`.
//
// data-send      the method and the path
// data-done      the text after success; what the response lists under `ended` is added
// data-next      the page that opens after success; by default this page again. `{name}` stands for
//                a member of the response
// data-secret    the field of the response that is shown once, in the form's `[data-result]`; then
//                no page opens
// data-open      the field of the response that has the address of a page of another service, which
//                opens
// data-if-match  the entity tag of what the page shows (RFC 9110 §13.1.1)
//
// The comment of fields.js says how a field becomes a member of the JSON body. The element
// `[data-status]` of the form shows the outcome; assistive technology reads it aloud.

import { onSubmit, sendJson } from './api.js';
import { explain, withTouch } from './ceremony.js';
import { bodyOf } from './fields.js';
import { openWithNotice, showNotice } from './notice.js';
import { showSecret } from './secret.js';

/**
 * The words for each kind of item that can end, such as sessions. The server has put them into the
 * page.
 */
const WORDS = JSON.parse(document.querySelector('[data-ended-words]').dataset.endedWords);

showNotice();
for (const form of document.querySelectorAll('form[data-send]')) connect(form);

function connect(form) {
  const [method, path] = form.dataset.send.split(' ');
  const status = form.querySelector('[data-status]');
  onSubmit(form, {
    status,
    waiting: 'One moment…',
    run: async () => {
      const body = bodyOf(form);
      const send = () => sendJson(method, path, body, { ifMatch: form.dataset.ifMatch });
      return finish(form, await withTouch(status, send));
    },
    explain,
  });
}

/** Shows the outcome of a form: on this page, or as a notice on the next page. */
function finish(form, answer) {
  const { done = 'Done.', next = location.pathname + location.search, secret, open } = form.dataset;
  if (open !== undefined) {
    location.assign(answer[open]);
    return 'One moment…';
  }
  const text = [done, endedText(answer.ended)].filter(Boolean).join(' ');
  const address = next.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(answer[name]));
  if (secret !== undefined && typeof answer[secret] === 'string') showSecret(form, answer, address);
  else openWithNotice(text, address);
  return text;
}

/**
 * Returns in words what a request ended: `Ended: 2 sessions, 1 SSH certificate.` The text is empty
 * if the response lists nothing.
 */
function endedText(ended) {
  if (!ended) return '';
  const items = Object.entries(ended)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${(WORDS[kind] ?? [kind, kind])[count === 1 ? 0 : 1]}`);
  return items.length === 0 ? 'Nothing had to end.' : `Ended: ${items.join(', ')}.`;
}
