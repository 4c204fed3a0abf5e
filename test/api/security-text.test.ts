import type { Response } from 'express';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { TABLE } from '#platform/config/table/settings.js';
import { SecurityContactController } from '../../src/features/security-contact/security-contact.controller.js';
import { securityText } from '../../src/features/security-contact/security-text.js';
import { startTestApp, type TestApp } from '../support/app.js';

const PATH = '/.well-known/security.txt';
const CONTACT = 'https://example.com/report?to=security';

describe('GET /.well-known/security.txt', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_SECURITY_CONTACT: CONTACT } });
  });
  afterAll(() => app.close());

  it('names the contact of the operator, its own address, and an end within a year (RFC 9116)', async () => {
    const { status, headers, text } = await app.client().get(PATH);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    const fields = text
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/: (.*)/, 2));
    expect(Object.fromEntries(fields)).toEqual({
      Contact: CONTACT,
      Expires: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      'Preferred-Languages': 'en',
      Canonical: `${app.baseUrl}${PATH}`,
    });
    expect(fields).toHaveLength(4); // fromEntries would hide a field that comes twice
    const days = (Date.parse(Object.fromEntries(fields).Expires) - Date.now()) / 86_400_000;
    expect([days > 170, days < 365]).toEqual([true, true]);
  });

  it('ends later with each day, also in a process that runs for years', () => {
    const facts = { contact: CONTACT, baseUrl: 'https://login.example.com' };
    const at = (time: string) => /Expires: (.*)/.exec(securityText(facts, new Date(time)))?.[1];
    expect(at('2026-11-23T00:00:00Z')).toBe('2027-05-22T00:00:00Z');
    expect(at('2026-11-23T23:59:59Z')).toBe('2027-05-22T00:00:00Z');
    expect(at('2029-01-01T12:00:00Z')).toBe('2029-06-30T00:00:00Z');
  });

  it('has a contact that is one https, mailto or tel URI', () => {
    const { shape } = TABLE.securityContact;
    const isGood = (text: string) => shape.safeParse(text).success;
    const good = ['mailto:security@example.com', 'tel:+1-201-555-0123', CONTACT];
    expect(good.filter((text) => !isGood(text))).toEqual([]);
    const bad = [
      'security@example.com',
      'http://example.com',
      'javascript:alert(1)',
      'mailto:',
      'https://',
      'mailto:a@b.example\nCanonical: https://evil.example',
      'mailto:ä@b.example',
    ];
    expect(bad.filter(isGood)).toEqual([]);
  });

  it('does not exist without a contact', () => {
    const config = { ...app.nest.get<Config>(CONFIG), securityContact: undefined };
    const controller = new SecurityContactController(config, app.nest.get(Clock));
    expect(() => controller.read({} as Response)).toThrow(
      expect.objectContaining({ code: 'not_found' }),
    );
  });
});
