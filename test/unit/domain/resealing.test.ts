import { Logger } from '@nestjs/common';
import { expect, it, vi } from 'vitest';
import { Resealing } from '../../../src/domain/oauth/notice-sending/resealing.js';
import { MovableClock } from '../../support/movable-clock.js';

it('a search for secrets of the previous root secret that fails does not stop the queue', async () => {
  const log = new Logger('test');
  const warnings = vi.spyOn(log, 'warn').mockReturnValue();
  const clock = new MovableClock();
  const sealAgain = vi.fn<() => Promise<void>>().mockRejectedValueOnce(new Error('a lock'));
  const resealing = new Resealing(clock, log, sealAgain);
  await expect(resealing.runIfDue()).resolves.toBeUndefined();
  expect(warnings).toHaveBeenCalledOnce();
  await resealing.runIfDue();
  expect(sealAgain).toHaveBeenCalledTimes(1);
  clock.advance(300_000);
  await resealing.runIfDue();
  expect(sealAgain).toHaveBeenCalledTimes(2);
});
