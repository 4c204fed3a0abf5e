import undici from 'undici';
import { describe, expect, it } from 'vitest';
import requestBy from 'undici/lib/api/api-request.js';
import { Agent } from '../../../../src/platform/outbound/undici.js';

describe('the parts of undici that are imported by file', () => {
  it('are those of its entry', () => {
    expect(Agent).toBe(undici.Agent);
    expect(undici.Dispatcher.prototype).toHaveProperty('request', requestBy);
  });
});
