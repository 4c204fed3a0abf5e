import { expect, it } from 'vitest';
import { mayVouchFor } from '#domain/providers/vouching.js';

const providers = [
  { slug: 'any', domains: undefined },
  { slug: 'one', domains: ['acme.example'] },
];

it.each([
  ['any', 'ada@other.example', true],
  ['one', 'ada@acme.example', true],
  ['one', 'ada@other.example', false],
  ['removed', 'ada@acme.example', false],
])('the provider %s vouches for %s: %s', (slug, address, isBelieved) => {
  expect(mayVouchFor(providers, slug, address)).toBe(isBelieved);
});
