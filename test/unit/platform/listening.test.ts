import { expect, it } from 'vitest';
import { listenTo } from '../../../src/platform/database/queues/listening.js';
import type { DataSource } from '../../../src/platform/database/statements/typeorm.js';

it('a listener refuses another driver at once, because that looks like a lost connection later', () => {
  for (const driver of [{}, { master: {} }]) {
    const dataSource = { driver } as unknown as DataSource;
    expect(() => listenTo(dataSource, 'a_channel', () => undefined)).toThrow(TypeError);
  }
});
