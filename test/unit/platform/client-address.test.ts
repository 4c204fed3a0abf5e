import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { clientAddressResolver } from '../../../src/platform/http/request/client-address.js';

function request(peer: string, forwarded?: string): IncomingMessage {
  return {
    socket: { remoteAddress: peer },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  } as unknown as IncomingMessage;
}

describe('the client address', () => {
  const resolve = clientAddressResolver(['10.0.0.0/8', 'fd00::/8']);

  it('is the peer when no proxy is trusted, and the header is ignored', () => {
    expect(clientAddressResolver([])(request('203.0.113.7', '1.2.3.4'))).toBe('203.0.113.7');
  });

  it('is the first address from the right that is not a trusted proxy', () => {
    expect(resolve(request('10.0.0.1', '6.6.6.6, 203.0.113.7, 10.0.0.2'))).toBe('203.0.113.7');
    expect(resolve(request('fd00::1', '2001:db8::7'))).toBe('2001:db8::7');
  });

  it('is the peer when the peer is not a trusted proxy', () => {
    expect(resolve(request('203.0.113.9', '1.2.3.4'))).toBe('203.0.113.9');
  });

  it('is the peer when the header contains text that is not an address', () => {
    expect(resolve(request('10.0.0.1', '1.2.3.4, unknown'))).toBe('10.0.0.1');
  });

  it('is the peer when every address is a trusted proxy', () => {
    expect(resolve(request('10.0.0.1', '10.0.0.3, 10.0.0.2'))).toBe('10.0.0.1');
  });

  it('unmaps IPv4-mapped addresses and drops zones', () => {
    expect(resolve(request('::ffff:10.0.0.1', '203.0.113.7'))).toBe('203.0.113.7');
    expect(resolve(request('::ffff:203.0.113.7'))).toBe('203.0.113.7');
    expect(resolve(request('fe80::1%eth0'))).toBe('fe80::1');
  });
});
