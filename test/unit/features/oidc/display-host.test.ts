import { expect, it } from 'vitest';
import { displayHost } from '../../../../src/domain/oauth/clients/display-name.js';

it.each([
  ['https://client.example/callback', 'client.example'],
  ['https://client.example:8443/callback', 'client.example:8443'],
  ['http://127.0.0.1/callback', '127.0.0.1'],
  ['com.example.app:/callback', 'com.example.app:'],
  ['com.example.app://bank.example/callback', 'com.example.app:'],
  ['no address', ''],
])('10.8 shows the host of %s, and no host for a scheme outside the web', (uri, shown) => {
  expect(displayHost(uri)).toBe(shown);
});
