import { describe, expect, it } from 'vitest';
import { compareTitles, readRenamings } from '../support/titles/compare-titles.js';

const test = (file: string, name: string) => ({ file, name });
const before = [
  test('a.test.ts', 'the door > opens'),
  test('a.test.ts', 'the door > closes'),
  test('a.test.ts', 'the door > locks'),
  test('a.test.ts', 'the door > holds against rain and wind'),
];

describe('the comparison of the titles of two commits', () => {
  it('counts the tests that stayed, moved to another file, and went to another suite', () => {
    const after = [
      test('a.test.ts', 'the door > opens'),
      test('b.test.ts', 'the door > closes'),
      test('b.test.ts', 'the gate > locks'),
      test('b.test.ts', 'the gate > squeaks'),
    ];
    expect(compareTitles(before, after)).toEqual({
      counts: { same: 1, moved: 1, regrouped: 1, renamed: 0 },
      lost: [before[3]],
      added: [after[3]],
    });
  });

  it('finds a lost test among several of one title', () => {
    const twice = [test('a.test.ts', 'opens'), test('b.test.ts', 'opens')];
    expect(compareTitles(twice, [test('c.test.ts', 'opens')]).lost).toHaveLength(1);
  });

  it('accepts a split that a list names, and not one half of it', () => {
    const renamings = readRenamings(
      '# split\nholds against rain and wind -> holds against rain\nholds against rain and wind -> holds against wind\n',
    );
    const half = [...before.slice(0, 3), test('a.test.ts', 'the door > holds against rain')];
    expect(compareTitles(before, half, renamings).lost).toEqual([before[3]]);
    const whole = [...half, test('b.test.ts', 'the gate > holds against wind')];
    expect(compareTitles(before, whole, renamings)).toEqual({
      counts: { same: 3, moved: 0, regrouped: 0, renamed: 1 },
      lost: [],
      added: [],
    });
  });

  it('refuses a line of the list that is no renaming', () => {
    expect(() => readRenamings('opens\n')).toThrow('This line is not "old title -> new title"');
  });
});
