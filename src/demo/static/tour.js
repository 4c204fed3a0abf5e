// The script of the demo's page on which a person leaves the company. It sends the two requests
// (leave and come back), and shows how access and audit log change. Only the demo serves this file.

import { onSubmit, sendJson } from '../api.js';
import { localTime } from '../page.js';

/** The milliseconds between two requests for the present state. */
const INTERVAL = 2000;

const DONE = {
  leave: 'The person is deleted. Watch the access end.',
  return: 'The person is back, with a new key.',
};

const live = document.querySelector('[data-live]');
const status = live.querySelector('[data-status]');
const follow = live.querySelector('[data-follow]');
const forms = [...live.querySelectorAll('form[data-act]')];

for (const form of forms) {
  onSubmit(form, {
    status,
    waiting: 'One moment…',
    run: async () => {
      const { act } = form.dataset;
      show(await sendJson('POST', `/demo/leaver/${act}`));
      if (act === 'leave') void untilAllEnded();
      return DONE[act];
    },
    explain: () => 'It did not work. Please try again.',
  });
}
setInterval(() => {
  if (follow.checked && !document.hidden) void look();
}, INTERVAL);

/**
 * Asks for the state more often until all access has ended, even if the visitor has stopped the
 * regular updates.
 */
async function untilAllEnded() {
  while (live.querySelector('[data-open="true"]')) {
    await new Promise((resolve) => setTimeout(resolve, INTERVAL / 4));
    await look();
  }
}

async function look() {
  const response = await fetch('/demo/live', { credentials: 'same-origin' }).catch(() => undefined);
  if (response?.ok) show(await response.json());
}

function show({ workday, events }) {
  for (const [kind, { isOpen, text }] of Object.entries(workday.access)) {
    const state = live.querySelector(`[data-access="${kind}"]`);
    state.dataset.open = String(isOpen);
    write(state, text);
  }
  for (const form of forms) form.hidden = (form.dataset.act === 'leave') !== workday.isEmployed;
  live.querySelector('[data-events]').replaceChildren(...events.map(line));
}

function line({ sentence, created_at }) {
  const item = document.createElement('li');
  const time = Object.assign(document.createElement('time'), { dateTime: created_at });
  time.textContent = localTime(created_at);
  const text = Object.assign(document.createElement('bdi'), { textContent: sentence });
  item.append(text, ' ', time);
  return item;
}

function write(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
