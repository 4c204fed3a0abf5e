import { describe, expect, it } from 'vitest';
import {
  hasBlock,
  withBlock,
  withoutBlock,
  type MarkedBlock,
} from '../src/changes/marked-block.js';

const block = (position: 'top' | 'bottom', ...lines: string[]): MarkedBlock => ({
  name: 'ssh',
  lines,
  position,
});
const TOP = block('top', 'one', 'two');
const BOTTOM = block('bottom', 'one', 'two');
const RENDERED = '# >>> svc ssh >>>\none\ntwo\n# <<< svc ssh <<<\n';

describe('a marked block', () => {
  it('stands before the content, or after it', () => {
    expect(withBlock('Host a\n', TOP)).toBe(`${RENDERED}Host a\n`);
    expect(withBlock('Host a\n', BOTTOM)).toBe(`Host a\n${RENDERED}`);
  });

  it('is the same after a second time', () => {
    for (const text of [undefined, '', 'a', 'a\n', 'a\r\nb']) {
      for (const one of [TOP, BOTTOM]) {
        const once = withBlock(text, one);
        expect(withBlock(once, one)).toBe(once);
        expect(hasBlock(once, 'ssh')).toBe(true);
        expect(hasBlock(once, 'aws')).toBe(false);
      }
    }
  });

  it.each([
    ['nothing', ''],
    ['an open line', 'a'],
    ['a line', 'a\n'],
    ['CRLF', 'a\r\nb\r\n'],
    ['empty lines', '\n\n'],
  ])('leaves %s byte for byte as it was when it is removed', (_, text) => {
    for (const one of [TOP, BOTTOM]) {
      expect(withoutBlock(withBlock(text, one), 'ssh').text).toBe(text);
    }
  });

  it('takes the file that it made with it, and tells if it made the folder', () => {
    expect(withoutBlock(withBlock(undefined, TOP), 'ssh')).toEqual({
      text: undefined,
      madeFolder: false,
    });
    expect(withoutBlock(withBlock(undefined, TOP, false), 'ssh')).toEqual({
      text: undefined,
      madeFolder: true,
    });
  });

  it('leaves what the user added to a file that it made', () => {
    const text = `${withBlock(undefined, TOP)}Host mine\n`;
    expect(withoutBlock(text, 'ssh').text).toBe('Host mine\n');
  });

  it('keeps the line break that it added when lines follow now', () => {
    const text = `${withBlock('a', BOTTOM)}b\n`;
    expect(withoutBlock(text, 'ssh').text).toBe('a\nb\n');
  });

  it('is replaced in its place, also when the user moved or changed it', () => {
    const text = `a\n${RENDERED.replace('two', 'mine')}b\n`;
    expect(withBlock(text, TOP)).toBe(`a\n${RENDERED}b\n`);
  });

  it('leaves the blocks of other names alone', () => {
    const both = withBlock(withBlock('a\n', { ...TOP, name: 'git' }), TOP);
    expect(withoutBlock(both, 'ssh').text).toBe(withBlock('a\n', { ...TOP, name: 'git' }));
  });

  it('is found where an editor removed the last line break or wrote CRLF', () => {
    expect(withoutBlock(`a\n${RENDERED}`.trimEnd(), 'ssh').text).toBe('a\n');
    expect(withoutBlock(`${RENDERED}a\n`.replaceAll('\n', '\r\n'), 'ssh').text).toBe('a\r\n');
  });

  it.each([
    ['an end without a beginning', 'a\n# <<< svc ssh <<<\n', 2],
    ['a beginning without an end', 'a\n# >>> svc ssh >>>\nb\n', 2],
    ['two blocks of one name', RENDERED + RENDERED, 5],
    ['a block inside another', '# >>> svc git >>>\n# >>> svc ssh >>>\n', 1],
    ['an end of another name', '# >>> svc git >>>\n# <<< svc ssh <<<\n', 2],
    ['a changed marker', '  # >>> svc ssh\n', 1],
  ])('refuses %s with the number of the line', (_, text, line) => {
    for (const act of [() => withBlock(text, TOP), () => withoutBlock(text, 'ssh')]) {
      expect(act).toThrow(expect.objectContaining({ line }));
    }
  });
});
