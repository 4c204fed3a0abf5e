// Replaces `navigator.credentials` by the demo's software key if the checkbox on the page is
// ticked. Only the demo serves this file.

import { sendJson } from '../api.js';

/**
 * The name in local storage under which the state of the checkbox is stored. Any value but `off`
 * means ticked.
 */
const CHOICE = 'demo-software-key';
const isOn = () => localStorage.getItem(CHOICE) !== 'off';

/**
 * The account for the next login without a session; undefined for the newest account of the key.
 */
let account;

const { credentials } = navigator;
for (const ceremony of ['create', 'get']) {
  const real = credentials[ceremony].bind(credentials);
  credentials[ceremony] = (options) => (isOn() ? ask(ceremony, options.publicKey) : real(options));
}
const aside = showChoice();
if (isOn()) void showAccounts();

/** Asks the software key, and returns the part of a PublicKeyCredential that the pages use. */
async function ask(ceremony, publicKey) {
  const options = { ...toJson(publicKey), ...(ceremony === 'get' && account ? { account } : {}) };
  const json = await sendJson('POST', `/demo/software-key/${ceremony}`, options);
  return { ...json, toJSON: () => json };
}

/** Converts the options of WebAuthn to JSON, with bytes as base64url. */
function toJson(value) {
  if (value instanceof ArrayBuffer) return toBase64url(new Uint8Array(value));
  if (ArrayBuffer.isView(value)) {
    return toBase64url(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  }
  if (Array.isArray(value)) return value.map(toJson);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, toJson(inner)]));
}

function toBase64url(bytes) {
  const base64 = btoa(String.fromCharCode(...bytes));
  return base64.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/** Shows the checkbox for the software key above the page, and the link to the tour. */
function showChoice() {
  const style = element('link', { rel: 'stylesheet', href: '/static/demo/software-key.css' });
  document.head.append(style);

  const box = element('input', { type: 'checkbox', checked: isOn() });
  box.addEventListener('change', () => localStorage.setItem(CHOICE, box.checked ? 'on' : 'off'));
  const label = element('label', {}, box, ' Use the demo’s software key');
  const hint = element('span', {}, 'It answers at once. Untick it to use a real security key.');
  const tour = element('a', { href: '/demo' }, 'Tour of the demo');
  const made = element('aside', { className: 'demo-choice', ariaLabel: 'Demo' }, label, hint, tour);
  document.querySelector('main').before(made);
  return made;
}

/**
 * Offers the accounts of the software key if there is no session, as a browser does for a key with
 * several accounts. One click logs in.
 */
async function showAccounts() {
  const login = document.querySelector('form[data-ceremony="login"]');
  if (!login || document.documentElement.dataset.session) return;
  const { accounts } = await sendJson('GET', '/demo/software-key/accounts');
  const buttons = accounts.map(({ name, userHandle }) => {
    const button = element('button', { type: 'button', className: 'button quiet' }, name);
    button.addEventListener('click', () => {
      account = userHandle;
      login.requestSubmit();
    });
    return element('li', {}, button);
  });
  if (buttons.length === 0) return;
  const label = element('p', { id: 'demo-accounts' }, 'Log in at once as:');
  const list = element('ul', {}, ...buttons);
  list.setAttribute('aria-labelledby', label.id);
  aside.append(element('div', { className: 'demo-accounts' }, label, list));
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
