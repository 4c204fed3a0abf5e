import { describe, expect, it } from 'vitest';
import {
  isGlobalAddress,
  isLoopbackAddress,
} from '../../../../src/platform/outbound/global-address.js';

/**
 * The first and the last address of every special-purpose range, and the addresses of cloud
 * metadata services.
 */
const NOT_GLOBAL: Readonly<Record<string, readonly string[]>> = {
  'this network': ['0.0.0.0', '0.255.255.255'],
  private: [
    '10.0.0.0',
    '10.255.255.255',
    '172.16.0.0',
    '172.31.255.255',
    '192.168.0.0',
    '192.168.255.255',
  ],
  'carrier-grade NAT': ['100.64.0.0', '100.127.255.255'],
  loopback: ['127.0.0.0', '127.0.0.1', '127.255.255.255', '::1'],
  'link-local': ['169.254.0.0', '169.254.255.255', 'fe80::1', 'febf::1', 'fe80::1%eth0'],
  'metadata of clouds': [
    '169.254.169.254',
    '169.254.170.2',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    'fd00:ec2::254',
    'fd20:ce::254',
  ],
  'protocol assignments': ['192.0.0.0', '192.0.0.255', '2001:1::1', '2001:1ff:ffff::1'],
  documentation: [
    '192.0.2.0',
    '192.0.2.255',
    '198.51.100.0',
    '198.51.100.255',
    '203.0.113.0',
    '203.0.113.255',
    '2001:db8::',
    '2001:db8:ffff::1',
    '3fff::',
    '3fff:fff::1',
  ],
  benchmarking: ['198.18.0.0', '198.19.255.255', '2001:2::1'],
  AS112: ['192.31.196.1', '192.175.48.1', '2620:4f:8000::1'],
  AMT: ['192.52.193.0', '192.52.193.255'],
  '6to4 relays': ['192.88.99.0', '192.88.99.255'],
  multicast: ['224.0.0.0', '239.255.255.255', 'ff00::1', 'ff02::1', 'ffff::1'],
  'reserved and broadcast': ['240.0.0.0', '255.255.255.254', '255.255.255.255'],
  unspecified: ['::'],
  'unique-local': ['fc00::', 'fdff:ffff::1'],
  'site-local': ['fec0::1', 'feff::1'],
  'discard-only': ['100::', '100:0:0:1::1'],
  'segment routing': ['5f00::1'],
  'outside of 2000::/3': ['1fff:ffff::1', '4000::1'],
  ORCHID: ['2001:10::1', '2001:20::1'],
  Teredo: ['2001::', '2001:0:7f00:1::', '2001:0:ffff::1'],
  'IPv4-mapped': [
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:8.8.8.8',
    '0:0:0:0:0:ffff:a9fe:a9fe',
  ],
  'IPv4-compatible': ['::127.0.0.1', '::8.8.8.8'],
  'IPv4-translated': ['::ffff:0:127.0.0.1'],
  NAT64: ['64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::a00:1', '64:ff9b:1:ffff::1'],
  '6to4': ['2002::', '2002:7f00:1::', '2002:808:808::1'],
  ISATAP: [
    '2606:4700:0:1:0:5efe:7f00:1',
    '2606:4700::5efe:7f00:1',
    '2606:4700:0:1:200:5efe:10.0.0.1',
    '2606:4700:0:1:0:5efe::',
  ],
  'no address': [
    '',
    'localhost',
    '127.1',
    '0x7f000001',
    '2130706433',
    '8.8.8.8.',
    '[2606:4700::1]',
  ],
};

/** Addresses that are next to a range above, or that look like an address in it. */
const GLOBAL = [
  '1.0.0.0',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '168.63.129.15',
  '168.63.129.17',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '191.255.255.255',
  '192.0.1.0',
  '192.0.3.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '203.0.112.255',
  '203.0.114.0',
  '223.255.255.255',
  '2000::1',
  '2001:200::1',
  '2001:db7::1',
  '2001:db9::1',
  '2003::1',
  '2606:4700:4700::1111',
  '2606:4700:0:1:1:5efe:7f00:1',
  '2606:4700:0:1:0:5eff:7f00:1',
  '2606:4700:5efe::1',
  '2620:4f:8001::1',
  '3ffe:ffff::1',
  '3fff:1000::1',
] as const;

describe('a global address', () => {
  it.each(Object.entries(NOT_GLOBAL).flatMap(([kind, all]) => all.map((one) => [kind, one])))(
    'is not of the kind %s: %s',
    (_kind, address) => {
      expect(isGlobalAddress(address)).toBe(false);
    },
  );

  it.each(GLOBAL)('is %s', (address) => {
    expect(isGlobalAddress(address)).toBe(true);
  });
});

describe('a loopback address', () => {
  it.each(['127.0.0.1', '127.255.255.254', '::1'])('is %s', (address) => {
    expect(isLoopbackAddress(address)).toBe(true);
  });

  it.each([
    '126.255.255.255',
    '128.0.0.0',
    '0.0.0.0',
    '::',
    '::2',
    '::ffff:127.0.0.1',
    '::127.0.0.1',
    '64:ff9b::127.0.0.1',
    '169.254.169.254',
    'localhost',
    '',
  ])('is not %s', (address) => {
    expect(isLoopbackAddress(address)).toBe(false);
  });
});
