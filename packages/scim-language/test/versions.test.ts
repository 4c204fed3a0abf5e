import { describe, expect, it } from 'vitest';
import { namesVersion, versionTag } from '@svc/scim-language';

describe('versions (RFC 7644 §3.14)', () => {
  const tag = versionTag('a1');

  it('are weak entity tags', () => {
    expect(tag).toBe('W/"a1"');
  });

  it('are named by themselves, as strong tags, in lists, and by a star', () => {
    for (const condition of ['W/"a1"', '"a1"', ' "b2" , W/"a1"', '*', ' * ']) {
      expect(namesVersion(condition, tag), condition).toBe(true);
    }
  });

  it('are named neither by another tag nor by a text that is no tag', () => {
    for (const condition of ['W/"a2"', '"W/a1"', 'a1', '', '"*"', undefined]) {
      expect(namesVersion(condition, tag), condition).toBe(false);
    }
  });
});
