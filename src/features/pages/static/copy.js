// Copies a text of the page to the clipboard: `<button data-copy="id" hidden>` copies the text of
// the element with the id. The buttons are hidden until this script shows them, because a page over
// HTTP has no clipboard.

import { say } from './api.js';

/** A line that is not visible. Assistive technology reads aloud what was copied. */
const spoken = Object.assign(document.createElement('p'), { className: 'spoken', role: 'status' });

if (navigator.clipboard) {
  document.body.append(spoken);
  for (const button of document.querySelectorAll('[data-copy]')) connect(button);
}

function connect(button) {
  button.hidden = false;
  button.addEventListener('click', async () => {
    const source = document.getElementById(button.dataset.copy);
    const done = await navigator.clipboard.writeText(source.textContent).then(
      () => true,
      () => false,
    );
    if (!done) getSelection().selectAllChildren(source);
    const word = done ? 'Copied' : 'Selected';
    button.textContent = word;
    button.ariaLabel = button.ariaLabel.replace(/^\w+/, word);
    say(spoken, 'done', done ? 'Copied.' : 'Selected. Copy it with the keyboard.');
  });
}
