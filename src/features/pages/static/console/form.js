// Sends the forms of a page to the JSON API: `<form data-send="POST /api/v1/org/…">`.
//
// data-send      the method and the path
// data-done      the text after success; what the response lists under `ended` is added
// data-next      the page to open then; by default this page again
// data-secret    the field of the response that is shown once, in the form's `[data-result]`, and no page is opened
// data-if-match  the entity tag of what the page shows (RFC 9110 §13.1.1)
//
// A field becomes a member of the JSON body: a number where it has data-type="number", lines where it has data-type="lines",
// true or false for a checkbox. An empty field that is not required is left out. The form's live region is `[data-status]`.

import { onSubmit, sendJson } from './api.js';
import { explain, withTouch } from './ceremony.js';
import { openWithNotice, showNotice } from './notice.js';

/** The words for what an act ended, by the names of the API. */
const ENDED = {
  sessions: ['session', 'sessions'],
  certificates: ['SSH certificate', 'SSH certificates'],
  keys: ['security key', 'security keys'],
  grants: ['application', 'applications'],
  tokens: ['token', 'tokens'],
  github_tokens: ['GitHub token', 'GitHub tokens'],
};

showNotice();
for (const form of document.querySelectorAll('form[data-send]')) connect(form);

function connect(form) {
  const [method, path] = form.dataset.send.split(' ');
  const status = form.querySelector('[data-status]');
  onSubmit(form, {
    status,
    waiting: 'One moment…',
    run: async () => {
      const send = () => sendJson(method, path, bodyOf(form), { ifMatch: form.dataset.ifMatch });
      const answer = await withTouch(status, send);
      const text = [form.dataset.done ?? 'Done.', endedText(answer.ended)]
        .filter(Boolean)
        .join(' ');
      if (form.dataset.secret === undefined) {
        openWithNotice(text, form.dataset.next ?? location.pathname + location.search);
      } else {
        showSecret(form, String(answer[form.dataset.secret] ?? ''));
      }
      return text;
    },
    explain,
  });
}

/** Returns the JSON body of a form; undefined for a form without fields. */
function bodyOf(form) {
  const fields = [...form.elements].filter(({ name, disabled }) => name && !disabled);
  if (fields.length === 0) return undefined;
  const members = fields
    .filter((field) => field.type !== 'radio' || field.checked)
    .map((field) => [field.name, valueOf(field)]);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

function valueOf(field) {
  if (field.type === 'checkbox') return field.checked;
  const text = field.value.trim();
  if (text === '' && !field.required) return undefined;
  if (field.dataset.type === 'number') return Number(text);
  if (field.dataset.type === 'lines') return text.split(/\s*\n\s*/);
  return text;
}

/** Says what an act ended: `Ended: 2 sessions, 1 SSH certificate.` Empty where the response lists nothing. */
function endedText(ended) {
  if (!ended) return '';
  const items = Object.entries(ended)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${(ENDED[kind] ?? [kind, kind])[count === 1 ? 0 : 1]}`);
  return items.length === 0 ? 'Nothing had to end.' : `Ended: ${items.join(', ')}.`;
}

/** Shows a secret once. It is in no address and in no storage, and is gone when the page is left. */
function showSecret(form, secret) {
  const result =
    form.querySelector('[data-result]') ?? form.parentElement.querySelector('[data-result]');
  result.hidden = false;
  const output = result.querySelector('[data-value]');
  output.textContent = secret;
  output.focus();
}
