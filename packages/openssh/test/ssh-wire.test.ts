import { describe, expect, it } from 'vitest';
import { SshReader, sshString, sshStrings, uint32, uint64 } from '../src/wire.js';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('RFC 4251 §5, writing', () => {
  it('writes the length of a string in bytes, not in characters', () => {
    expect(sshString('ü')).toEqual(hex('00000002 c3bc'));
    expect(sshString(Buffer.of(0, 255))).toEqual(hex('00000002 00ff'));
  });

  it('writes strings one after another', () => {
    expect(sshStrings(['a', ''])).toEqual(hex('00000001 61 00000000'));
  });

  it('writes numbers in network order with all 64 bits', () => {
    expect(uint32(0xfffffffe)).toEqual(hex('fffffffe'));
    expect(uint64(2n ** 64n - 2n)).toEqual(hex('fffffffffffffffe'));
  });
});

describe('RFC 4251 §5, reading', () => {
  it('reads field after field, and the rest', () => {
    const fields = new SshReader(hex('00000001 61 00000002 0304 0506'));
    expect(fields.name()).toBe('a');
    expect(fields.string()).toEqual(hex('0304'));
    expect(fields.rest()).toEqual(hex('0506'));
    expect(() => fields.end()).not.toThrow();
  });

  // The examples of RFC 4251 §5.
  it.each([
    ['0000000809a378f9b2e332a7', '09a378f9b2e332a7'],
    ['000000020080', '80'],
  ])('reads the positive mpint %s', (encoded, magnitude) => {
    expect(new SshReader(hex(encoded)).mpint()).toEqual(hex(magnitude));
  });

  it.each([
    ['a negative number', '00000002edcc', /negative/],
    ['zero', '00000000', /zero/],
    ['a zero byte', '0000000100', /zero/],
    ['a needless leading zero', '000000020079', /leading zeros/],
  ])('refuses %s as an mpint', (_, encoded, message) => {
    expect(() => new SshReader(hex(encoded)).mpint()).toThrow(message);
  });

  it.each([
    ['nothing at all', ''],
    ['a length cut short', '000000'],
    ['a string cut short', '0000000361 62'],
    ['a length of 4 GiB', 'ffffffff61'],
  ])('never reads past the end: %s', (_, encoded) => {
    expect(() => new SshReader(hex(encoded)).string()).toThrow('middle of a field');
  });

  it('detects bytes after the last field', () => {
    const fields = new SshReader(hex('00000000 00'));
    fields.string();
    expect(() => fields.end()).toThrow('bytes after its end');
  });
});
