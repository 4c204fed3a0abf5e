// Shows a secret once, in the `[data-result]` of its form. The secret is in no URL and in no
// storage of the browser, and is gone when the user leaves the page.
//
// data-value         takes the secret, and gets the focus
// data-fill="name"   takes another member of the response
// data-if="name=x"   is shown only if the member has this value
// data-copy="id"     a button that copies the text of an element, by copy.js
// data-onward        a link to the next page

import './copy.js';

/**
 * Shows the secret in a response, and hides the form, because a second click would create a second
 * secret.
 */
export function showSecret(form, answer, next) {
  const result =
    form.querySelector('[data-result]') ?? form.parentElement.querySelector('[data-result]');
  const all = (selector) => result.querySelectorAll(selector);
  for (const element of all('[data-fill]')) {
    element.textContent = String(answer[element.dataset.fill] ?? '');
  }
  for (const element of all('[data-if]')) {
    const [name, value] = element.dataset.if.split('=');
    element.hidden = String(answer[name]) !== value;
  }
  for (const link of all('[data-onward]')) link.href = next;
  const output = result.querySelector('[data-value]');
  output.textContent = String(answer[form.dataset.secret]);
  result.hidden = false;
  if (!form.contains(result)) form.hidden = true;
  output.focus();
  // If the user leaves the page and returns by "Back", the secret is not shown again.
  addEventListener('pagehide', () => result.replaceChildren(), { once: true });
}
