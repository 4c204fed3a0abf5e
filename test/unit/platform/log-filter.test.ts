import { describe, expect, it } from 'vitest';
import { parseLogFilter } from '../../../src/platform/telemetry/filter/log-filter.js';

const [TRACE, DEBUG, INFO, WARN, ERROR] = [10, 20, 30, 40, 50];

describe('RUST_LOG', () => {
  it('applies a bare level to every target', () => {
    const filter = parseLogFilter('warn');
    expect(filter.level).toBe('warn');
    expect(filter.allows(INFO, 'scim')).toBe(false);
    expect(filter.allows(WARN, 'scim')).toBe(true);
  });

  it('uses info by default', () => {
    expect(parseLogFilter('').allows(INFO, 'x')).toBe(true);
    expect(parseLogFilter('security=error').allows(DEBUG, 'x')).toBe(false);
  });

  it('lets the longest matching target win', () => {
    const filter = parseLogFilter(
      'info,security=warn,svc_server::scim=debug,svc_server::scim::users=error',
    );
    expect(filter.level).toBe('debug');
    expect(filter.allows(INFO, 'security')).toBe(false);
    expect(filter.allows(DEBUG, 'scim')).toBe(true);
    expect(filter.allows(DEBUG, 'svc_server::scim')).toBe(true);
    expect(filter.allows(WARN, 'scim::users')).toBe(false);
    expect(filter.allows(DEBUG, 'scim::groups')).toBe(true);
    expect(filter.allows(DEBUG, 'scimitar')).toBe(false);
  });

  it('takes svc_server alone for every target of the service', () => {
    expect(parseLogFilter('svc_server=debug').allows(DEBUG, 'anything')).toBe(true);
  });

  it('takes a bare target for everything of it', () => {
    const filter = parseLogFilter('warn,http');
    expect(filter.allows(TRACE, 'http')).toBe(true);
    expect(filter.allows(INFO, 'errors')).toBe(false);
  });

  it('silences even errors with off', () => {
    const filter = parseLogFilter('off');
    expect(filter.allows(ERROR, 'x')).toBe(false);
    expect(filter.level).toBe('silent');
  });

  it('refuses an unknown level', () => {
    expect(() => parseLogFilter('info,scim=loud')).toThrow(/RUST_LOG/);
  });

  it.each(['constructor', '__proto__', 'toString', 'valueOf'])('refuses %s as a level', (name) => {
    expect(() => parseLogFilter(`info,scim=${name}`)).toThrow(/RUST_LOG/);
    // Without `=`, a word that is not the name of a level is a target.
    expect(parseLogFilter(`warn,${name}`).allows(TRACE, name)).toBe(true);
  });
});
