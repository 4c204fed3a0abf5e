import { describe, expect, it } from 'vitest';
import { WrongArguments } from '@svc/arguments';
import { readArguments } from '../src/arguments.js';

describe('the arguments of the demo', () => {
  it('are all optional', () => {
    expect(readArguments([])).toEqual({
      json: false,
      exit: false,
      help: false,
      port: undefined,
      attestationRoot: undefined,
    });
  });

  it('set the options that they name', () => {
    const argv = ['--json', '--exit', '--port', '0', '--attestation-root', 'root.pem'];
    expect(readArguments(argv)).toEqual({
      json: true,
      exit: true,
      help: false,
      port: 0,
      attestationRoot: 'root.pem',
    });
  });

  it.each([
    { argv: ['--production'], names: '--production' },
    { argv: ['walk'], names: 'walk' },
    { argv: ['--json=yes'], names: '--json' },
    { argv: ['--attestation-root'], names: '--attestation-root' },
    { argv: ['--port', 'http'], names: '--port' },
    { argv: ['--port', '70000'], names: '--port' },
    { argv: ['--port', ''], names: '--port' },
  ])('refuses $argv', ({ argv, names }) => {
    expect(() => readArguments(argv)).toThrow(WrongArguments);
    expect(() => readArguments(argv)).toThrow(names);
  });
});
