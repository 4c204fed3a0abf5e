import { ConsoleLogger, Logger as NestLogger } from '@nestjs/common';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { createLogger } from '#platform/telemetry/pino-options.js';
import { redirectNestLog } from '../../../src/break-glass/ground.js';

describe('the log of a command of the operator', () => {
  afterAll(() => NestLogger.overrideLogger(new ConsoleLogger()));

  it('keeps the facts and the error that stand before the text of a line', () => {
    const logger = Object.assign(createLogger({ format: 'text', filter: 'error' }, 2), {
      warn: vi.fn<(facts: object, text?: string) => void>(),
      error: vi.fn<(facts: object, text?: string) => void>(),
    });
    redirectNestLog(logger);
    const log = new NestLogger('security');
    log.warn({ missing: '3 audit rows' }, 'the database lost commits');
    expect(logger.warn).toHaveBeenCalledWith(
      { missing: '3 audit rows', context: 'security' },
      'the database lost commits',
    );
    const error = new Error('refused');
    log.error(error, 'the end of access failed');
    expect(logger.error).toHaveBeenCalledWith(
      { err: error, context: 'security' },
      'the end of access failed',
    );
    log.warn('one line');
    expect(logger.warn).toHaveBeenLastCalledWith({ context: 'security' }, 'one line');
  });
});
