// The script of the page of the security keys, on which a user adds, renames and removes keys.

import { onSubmit, sendJson } from './api.js';
import { explain, hasKeys, registerKey, withTouch } from './ceremony.js';
import { openWithNotice, showNotice } from './notice.js';

const PAGE = '/account/keys';

const CONFIRM = 'First confirm that it is you: touch one of your keys when it blinks.';

const ENDED = ['No session depended on it.', 'One session ended.'];

showNotice();

for (const add of document.querySelectorAll('form[data-add]')) {
  const status = add.querySelector('[data-status]');
  if (hasKeys(status)) addKey(add, status);
}

for (const key of document.querySelectorAll('[data-key]')) {
  const status = key.querySelector('[data-status]');
  renameKey(key, status);
  removeKey(key, status);
}

function addKey(form, status) {
  onSubmit(form, {
    status,
    waiting: 'One moment…',
    run: async (fields) => {
      const name = fields.get('name').trim() || undefined;
      const { key } = await registerKey(status, { name, confirm: CONFIRM });
      return showAgain(`Added “${key.name}”. It can log in to your account from now on.`, PAGE);
    },
    explain,
  });
}

function renameKey(key, status) {
  const form = key.querySelector('form[data-rename]');
  onSubmit(form, {
    status,
    waiting: 'Saving…',
    run: async (fields) => {
      const { name } = await sendJson('PATCH', form.dataset.rename, { name: fields.get('name') });
      for (const element of key.querySelectorAll('[data-name]')) element.textContent = name;
      form.elements.name.value = name;
      const details = form.closest('details');
      details.open = false;
      details.querySelector('summary').focus();
      return `Renamed to “${name}”.`;
    },
    explain: () => 'The key could not be renamed.',
  });
}

function removeKey(key, status) {
  const form = key.querySelector('form[data-remove]');
  if (!form) return; // the only key cannot be removed, so it has no form
  const send = () => sendJson('DELETE', form.dataset.remove);
  onSubmit(form, {
    status,
    waiting: 'Removing…',
    run: async () => {
      const name = key.querySelector('[data-name]').textContent;
      const { sessions_revoked, current_session_revoked } = await withTouch(status, send, CONFIRM);
      const ended = ENDED[sessions_revoked] ?? `${sessions_revoked} sessions ended.`;
      const next = current_session_revoked
        ? `/login?redirect_to=${encodeURIComponent(PAGE)}`
        : PAGE;
      return showAgain(`Removed “${name}”. ${ended}`, next);
    },
    explain,
  });
}

/**
 * Opens the page again with a notice about what was done. The page must load again, because the
 * list of keys and the counts have changed.
 */
function showAgain(text, address) {
  openWithNotice(text, address);
  return text;
}
