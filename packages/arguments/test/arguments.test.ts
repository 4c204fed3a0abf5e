import { describe, expect, it } from 'vitest';
import { sortArguments, takeOptions, WrongArguments } from '@svc/arguments';

const NAMES = { flags: ['loud', 'help'], values: ['host'], letters: { h: 'help' }, positionals: 2 };
const sort = (...args: string[]) => {
  const { positionals, has, all } = sortArguments(args, NAMES);
  return { positionals, loud: has('loud'), help: has('help'), hosts: all('host') };
};

describe('the arguments of a program', () => {
  it('are sorted into flags, values and the rest, in any order', () => {
    expect(sort('a', '--host', 'x', '--loud', 'b', '--host=y', '-h')).toEqual({
      positionals: ['a', 'b'],
      loud: true,
      help: true,
      hosts: ['x', 'y'],
    });
    expect(sortArguments(['--host=x', '--host', 'y'], NAMES).value('host')).toBe('y');
    expect(sortArguments([], NAMES).value('host')).toBeUndefined();
  });

  it.each([
    { args: ['--host', '-x'], hosts: ['-x'] },
    { args: ['--host', '--loud'], hosts: ['--loud'] },
    { args: ['--host', '--'], hosts: ['--'] },
    { args: ['--host='], hosts: [''] },
    { args: ['--host=a=b\nc'], hosts: ['a=b\nc'] },
    { args: ['--host', ''], hosts: [''] },
  ])('takes any text as the value of an option: $args', ({ args, hosts }) => {
    expect(sort(...args)).toEqual({ positionals: [], loud: false, help: false, hosts });
  });

  it('after -- are no options, and a single dash is none', () => {
    expect(sort('--', '--loud').positionals).toEqual(['--loud']);
    expect(sort('-', '--', '--').positionals).toEqual(['-', '--']);
  });

  it.each([
    { args: ['--quiet'], message: 'Unknown option: --quiet' },
    { args: ['--quiet=yes'], message: 'Unknown option: --quiet=yes' },
    { args: ['--loud=yes'], message: 'Unknown option: --loud=yes' },
    { args: ['--loud='], message: 'Unknown option: --loud=' },
    { args: ['--no-loud'], message: 'Unknown option: --no-loud' },
    { args: ['--=x'], message: 'Unknown option: --=x' },
    { args: ['---loud'], message: 'Unknown option: ---loud' },
    { args: ['--__proto__'], message: 'Unknown option: --__proto__' },
    { args: ['--constructor', 'x'], message: 'Unknown option: --constructor' },
    { args: ['-x'], message: 'Unknown option: -x' },
    { args: ['-hx'], message: 'Unknown option: -hx' },
    { args: ['-loud'], message: 'Unknown option: -loud' },
    { args: ['--host'], message: '--host needs a value.' },
    { args: ['a', 'b', 'c'], message: 'Unexpected argument: c' },
    { args: ['a', '--', 'b', '--loud'], message: 'Unexpected argument: --loud' },
    { args: ['--quiet', 'a', 'b', 'c'], message: 'Unknown option: --quiet' },
  ])('are refused: $args', ({ args, message }) => {
    const unknown = /^Unknown option: (.*)$/.exec(message)?.[1];
    expect(() => sort(...args)).toThrow(new WrongArguments(message, unknown));
  });

  it('notice a forgotten value where a program asks for it', () => {
    const strict = { ...NAMES, refusesDashes: true };
    for (const value of ['--loud', '-h', '--', '-']) {
      expect(() => sortArguments(['--host', value], strict), value).toThrow(
        new WrongArguments('--host needs a value.'),
      );
      expect(sortArguments([`--host=${value}`], strict).value('host')).toBe(value);
    }
  });

  it('for every command are taken from any place, and the rest stays in order', () => {
    const args = ['--loud', 'ssh', '--user', 'x', '-h', '-hx', '--loud=1', 'y'];
    const taken = takeOptions(args, NAMES);
    expect(taken.rest.map(({ text }) => text)).toEqual([
      'ssh',
      '--user',
      'x',
      '-hx',
      '--loud=1',
      'y',
    ]);
    expect([taken.has('loud'), taken.has('help')]).toEqual([true, true]);
  });
});
