import { expect, it } from 'vitest';
import { pauses } from '#platform/database/embedded-postgres/supervisor.js';

it('each pause is twice the one before it, up to the longest, without end', () => {
  const endless = pauses({ first: 20, longest: 1_000 });
  const nine = Array.from({ length: 9 }, () => endless.next().value);
  expect(nine).toEqual([20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000]);
});
