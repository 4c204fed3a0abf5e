import { describe, expect, it } from 'vitest';
import {
  domainOfEmail,
  normalizeEmail,
  parseEmailAddress,
} from '#domain/organizations/email-address.js';

describe('an e-mail address', () => {
  it('is trimmed and ASCII lower-cased', () => {
    expect(parseEmailAddress('  Ada.Lovelace+key@Engine.TEST ')).toBe(
      'ada.lovelace+key@engine.test',
    );
  });

  it('does not turn the Kelvin sign into the k of another user’s address', () => {
    expect(normalizeEmail('\u212Aay@engine.test')).toBe('\u212Aay@engine.test');
    expect(parseEmailAddress('\u212Aay@engine.test')).toBeUndefined();
  });

  it.each([
    '',
    'ada',
    '@engine.test',
    'ada@',
    'ada@@engine.test',
    'ada@engine.test,eve@evil.test',
    'ada@engine.test\nroot',
    'ada @engine.test',
    '"ada"@engine.test',
    'ada@-engine.test',
    `${'a'.repeat(65)}@engine.test`,
    `ada@${'a.'.repeat(130)}test`,
  ])('refuses %j', (text) => {
    expect(parseEmailAddress(text)).toBeUndefined();
  });

  it('belongs to the domain after its @', () => {
    expect(domainOfEmail('ada@engine.test')).toBe('engine.test');
  });
});
