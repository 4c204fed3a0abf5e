// Replaces `navigator.credentials` by the demo's software key while the checkbox on the page is ticked. Only the demo
// serves this file.

import { sendJson } from '../api.js';

/** The key of the choice in local storage; any value but `off` means on. */
const CHOICE = 'demo-software-key';
const isOn = () => localStorage.getItem(CHOICE) !== 'off';

const { credentials } = navigator;
for (const ceremony of ['create', 'get']) {
  const real = credentials[ceremony].bind(credentials);
  credentials[ceremony] = (options) => (isOn() ? ask(ceremony, options.publicKey) : real(options));
}
showChoice();

/** Calls the key, and returns the part of a PublicKeyCredential that the pages use. */
async function ask(ceremony, publicKey) {
  const json = await sendJson('POST', `/demo/software-key/${ceremony}`, toJson(publicKey));
  return { ...json, toJSON: () => json };
}

/** Converts options to JSON, with bytes as base64url. */
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

/** Shows the checkbox above the page. */
function showChoice() {
  const style = element('link', { rel: 'stylesheet', href: '/static/demo/software-key.css' });
  document.head.append(style);

  const box = element('input', { type: 'checkbox', checked: isOn() });
  box.addEventListener('change', () => localStorage.setItem(CHOICE, box.checked ? 'on' : 'off'));
  const label = element('label', {}, box, ' Use the demo’s software key');
  const hint = element('span', {}, 'It answers at once. Untick it to use a real security key.');
  const aside = element('aside', { className: 'demo-choice', ariaLabel: 'Demo' }, label, hint);
  document.querySelector('main').before(aside);
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
