import { expect, it } from 'vitest';
import { difference } from '../src/changes/difference.js';

it('shows an added block with its place, and no line of the user around it', () => {
  expect(difference('~/.ssh/config', 'secret\nb\n', 'secret\nnew\nb\n')).toEqual([
    '--- ~/.ssh/config',
    '+++ ~/.ssh/config',
    '@@ -1,0 +2,1 @@',
    '+new',
  ]);
});

it('shows removed and replaced lines', () => {
  expect(difference('f', 'a\nb\nc\n', 'a\nx\ny\nc\n').slice(2)).toEqual([
    '@@ -2,1 +2,2 @@',
    '-b',
    '+x',
    '+y',
  ]);
  expect(difference('f', 'a\na\n', 'a\n').slice(2)).toEqual(['@@ -2,1 +1,0 @@', '-a']);
});

it('shows a new file, and a file that goes', () => {
  expect(difference('f', undefined, 'a\n')).toEqual([
    '--- (no file)',
    '+++ f',
    '@@ -0,0 +1,1 @@',
    '+a',
  ]);
  expect(difference('f', 'a\n', undefined)[1]).toBe('+++ (no file)');
});

it('shows no control characters of a file to the terminal', () => {
  expect(difference('f', 'a\u001b[2J\u009b1m\n', undefined).at(-1)).toBe('-a\ufffd[2J\ufffd1m');
});
