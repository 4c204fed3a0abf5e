import { describe, expect, it } from 'vitest';
import { organizationDomain } from '#domain/organizations/organization-domain.js';

describe('the domain that makes an organization', () => {
  it.each([
    'engine.test',
    'example.com',
    'corp.example.co.uk',
    'alice.github.io',
    'xn--mnchen-3ya.de',
  ])('is the domain itself: %s', (domain) => {
    expect(organizationDomain(domain)).toBe(domain);
  });

  it.each(['com', 'co.uk', 'github.io', 'herokuapp.com'])(
    'is never a public suffix, where any person can register a name: %s',
    (domain) => {
      expect(organizationDomain(domain)).toBeNull();
    },
  );

  it.each([
    'gmail.com',
    'outlook.com',
    'yahoo.co.uk',
    'proton.me',
    'fastmail.com',
    'gmx.de',
    'me.33mail.com',
  ])('is never a public mail domain or a name below one: %s', (domain) => {
    expect(organizationDomain(domain)).toBeNull();
  });

  it.each(['localhost', '', '127.0.0.1', 'http://engine.test/', 'engine.test.', 'a b.test'])(
    'is never a text that is not a domain: %j',
    (domain) => {
      expect(organizationDomain(domain)).toBeNull();
    },
  );
});
