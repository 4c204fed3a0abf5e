import { describe, expect, it } from 'vitest';
import type { Config } from '../../../src/platform/config/config.js';
import { ownAuthorities, ownHost } from '../../../src/platform/http/edge/host-rule.js';

const AUTHORITIES = ['a.example', 'a.example:443', 'a.example:80', 'a.example:8443', 'b.a.example'];

function ours(isOurs: (authority: string) => boolean): string[] {
  return AUTHORITIES.filter(isOurs);
}

function http(baseUrl: string, rest: Partial<Config['http']> = {}): Config['http'] {
  return { baseUrl, mtls: { port: 8443, clientCas: undefined }, ...rest } as Config['http'];
}

describe('the authorities of the service', () => {
  it.each([
    ['https://a.example', ['a.example', 'a.example:443']],
    ['http://a.example', ['a.example', 'a.example:80']],
    ['https://a.example:8443', ['a.example:8443']],
  ])('at %s are %j, with or without the default port', (baseUrl, expected) => {
    expect(ours(ownAuthorities(http(baseUrl)))).toEqual(expected);
  });

  it('include the mutual-TLS listener where there is one', () => {
    const tls = { certificate: '', key: '' } as unknown as NonNullable<Config['http']['tls']>;
    expect(ours(ownAuthorities(http('https://a.example', { tls })))).toEqual([
      'a.example',
      'a.example:443',
      'a.example:8443',
    ]);
  });

  it('contain brackets where the host is an IPv6 address', () => {
    const isOurs = ownAuthorities(http('http://[::1]:3000'));
    expect(['[::1]:3000', '[::1]', '::1:3000'].filter(isOurs)).toEqual(['[::1]:3000']);
    expect(['[::1]:80', '[::1]', '[::2]'].filter(ownHost(http('https://[::1]')))).toEqual([
      '[::1]:80',
      '[::1]',
    ]);
  });

  it('have any port on the listener that only redirects, and one name', () => {
    expect(ours(ownHost(http('https://a.example')))).toEqual(AUTHORITIES.slice(0, 4));
  });
});
