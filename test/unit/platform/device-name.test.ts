import { describe, expect, it } from 'vitest';
import { deviceOf } from '../../../src/platform/text/device-name.js';

const nameOf = (userAgent: string | null) => deviceOf(userAgent).name;

describe('the name of a device', () => {
  it('names the browser and the system that disguise themselves as others', () => {
    const webKit = 'AppleWebKit/537.36 (KHTML, like Gecko)';
    const windows = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64)';
    const named = {
      [`${windows} ${webKit} Chrome/142.0.0.0 Safari/537.36`]: 'Chrome on Windows',
      [`${windows} ${webKit} Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0`]: 'Edge on Windows',
      [`Mozilla/5.0 (Linux; Android 10; K) ${webKit} Chrome/142.0.0.0 Mobile Safari/537.36`]:
        'Chrome on Android',
      [`Mozilla/5.0 (X11; Linux x86_64) ${webKit} HeadlessChrome/142.0.0.0 Safari/537.36`]:
        'Chrome on Linux',
      'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0': 'Firefox on Linux',
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15':
        'Safari on Mac',
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1':
        'Safari on iPhone',
    };
    for (const [userAgent, name] of Object.entries(named)) expect(nameOf(userAgent)).toBe(name);
  });

  it('names the command svc by its own name, and keeps the whole text beside the name', () => {
    expect(deviceOf('svc/0.9.0 (linux)')).toEqual({
      name: 'svc on Linux',
      whole: 'svc/0.9.0 (linux)',
    });
    expect(nameOf('svc/0.9.0 (darwin)')).toBe('svc on Mac');
    expect(nameOf('svc/0.9.0 (win32)')).toBe('svc on Windows');
  });

  it('shortens what an unknown program says of itself to one line, and invents nothing', () => {
    expect(nameOf('Grafana/11.2')).toBe('Grafana');
    expect(nameOf(`${'W'.repeat(500)}/1`)).toBe('W'.repeat(40));
    expect(nameOf('\u202e\u2066')).toBe('Unknown');
    expect(deviceOf(null)).toEqual({ name: 'Unknown', whole: undefined });
    expect(nameOf('')).toBe('Unknown');
  });
});
