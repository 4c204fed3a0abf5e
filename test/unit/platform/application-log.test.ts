import { QueryFailedError } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { applicationLog } from '../../../src/platform/telemetry/application-log.js';
import { createLogger, describeError } from '../../../src/platform/telemetry/pino-options.js';

describe('the log of an application', () => {
  it('logs the place of a failed query, and neither its text nor its parameters', () => {
    const lines: string[] = [];
    const logger = createLogger(
      { format: 'json', filter: 'info' },
      { write: (line: string) => void lines.push(line) },
    );
    const driver = Object.assign(new Error('the driver said no'), { code: '23505' });
    const error = new QueryFailedError('SELECT $1', ['planted-parameter'], driver);
    logger.error({ err: error, context: 'errors' }, 'bare');
    applicationLog(logger, () => undefined).nest.error(
      { err: error },
      'The service failed. Try again later.',
      'errors',
    );
    expect(lines.join('')).toContain('the driver said no');
    expect(lines.join('')).not.toContain('planted-parameter');
    expect(lines.join('')).not.toContain('SELECT');
  });

  it('does not let an error that quotes a client forge a line or control a terminal', () => {
    const error = new Error('got: \u001b[2J\nFORGED line\u202e');
    const cyclic = new Error('around');
    cyclic.cause = cyclic;
    error.cause = cyclic;
    const described = JSON.stringify(describeError(error));
    expect(described).toContain('got:');
    expect(described).not.toMatch(/\\u001b|\u202e|\\nFORGED/);
    expect(described.length).toBeLessThan(20_000);
  });
});
