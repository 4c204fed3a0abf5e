import { QueryFailedError } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { applicationLog } from '../../../src/platform/telemetry/application-log.js';
import { createLogger } from '../../../src/platform/telemetry/pino-options.js';

describe('the log of an application', () => {
  it('says of a failed query where it failed, and nothing of its text or parameters', () => {
    const lines: string[] = [];
    const logger = createLogger(
      { format: 'json', filter: 'info' },
      { write: (line: string) => void lines.push(line) },
    );
    const driver = Object.assign(new Error('the driver said no'), { code: '23505' });
    const error = new QueryFailedError('SELECT $1', ['planted-parameter'], driver);
    logger.error({ err: error, context: 'errors' }, 'bare');
    applicationLog(logger).nest.error(
      { err: error },
      'Something went wrong on our side.',
      'errors',
    );
    expect(lines.join('')).toContain('the driver said no');
    expect(lines.join('')).not.toContain('planted-parameter');
    expect(lines.join('')).not.toContain('SELECT');
  });
});
