import { describe, expect, it } from 'vitest';
import { sameOriginTarget } from '../../../src/platform/http/request/same-origin.js';

const BASE = 'https://keys.example.org';

describe('sameOriginTarget', () => {
  it.each([
    ['/', `${BASE}/`],
    ['/keys?sort=name#first', `${BASE}/keys?sort=name#first`],
    [`${BASE}/enroll`, `${BASE}/enroll`],
    ['keys', `${BASE}/keys`],
    [undefined, `${BASE}/`],
  ])('resolves %s to %s', (target, expected) => {
    expect(sameOriginTarget(target, BASE)).toBe(expected);
  });

  it.each([
    '//evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    'https:evil.example/..//evil.example\u0000',
    'http://keys.example.org/',
    'https://keys.example.org:8443/',
    'https://keys.example.org.evil.example/',
    'https://keys.example.org@evil.example/',
    'https://user:password@keys.example.org/',
    'javascript:alert(1)',
    'blob:https://keys.example.org/x',
    `/${'x'.repeat(2048)}`,
    'data:text/html,x',
    ' //evil.example',
    'https://evil.example',
  ])('replaces %j by the start page', (target) => {
    expect(sameOriginTarget(target, BASE)).toBe(`${BASE}/`);
  });

  it.each(['/.//evil.example', 'https:evil.example', '/%2f/evil.example', '///evil.example/../x'])(
    'resolves %j inside the origin of the service, however a browser parses the result',
    (target) => {
      const answer = sameOriginTarget(target, BASE);
      expect(new URL(answer, 'https://elsewhere.example').origin).toBe(BASE);
    },
  );

  it('refuses a scheme without slashes where the schemes differ', () => {
    expect(sameOriginTarget('https:evil.example', 'http://localhost:3000')).toBe(
      'http://localhost:3000/',
    );
  });
});
