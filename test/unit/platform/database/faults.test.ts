import { connect } from 'node:net';
import { DatabaseError } from 'pg';
import { QueryFailedError, QueryRunnerAlreadyReleasedError } from 'typeorm';
import { describe, expect, it } from 'vitest';
import {
  isDatabaseAway,
  isTimedOut,
  noteDuration,
  reasonOf,
  sqlStateOf,
  violatedConstraint,
} from '#platform/database/statements/faults.js';

function reported(code: string, constraint?: string): QueryFailedError {
  const error = new DatabaseError('as the server said it', 0, 'error');
  error.code = code;
  if (constraint !== undefined) error.constraint = constraint;
  return new QueryFailedError('SELECT 1', [], error);
}

function refusedConnection(path: string): Promise<Error> {
  return new Promise((resolve) => {
    connect(path).once('error', resolve);
  });
}

describe('isDatabaseAway', () => {
  it.each([
    ['57P01', 'a shutdown'],
    ['57P02', 'a crash'],
    ['57P03', 'a start-up'],
    ['57014', 'a statement timeout'],
    ['55P03', 'a lock timeout'],
    ['08006', 'a lost connection'],
    ['53300', 'too many connections'],
  ])('knows SQLSTATE %s: %s', (code) => {
    expect(isDatabaseAway(reported(code))).toBe(true);
  });

  it.each([
    'Connection terminated unexpectedly',
    'timeout exceeded when trying to connect',
    'Query read timeout',
  ])('knows the driver by its words: %s', (message) => {
    expect(isDatabaseAway(new Error(message))).toBe(true);
    expect(isDatabaseAway(new QueryFailedError('SELECT 1', [], new Error(message)))).toBe(true);
  });

  it('knows a socket nobody listens on, and a runner whose connection died', async () => {
    expect(isDatabaseAway(await refusedConnection('/nonexistent/.s.PGSQL.5432'))).toBe(true);
    expect(isDatabaseAway(new QueryRunnerAlreadyReleasedError())).toBe(true);
  });

  it('knows a socket whose queue is full, as a frozen server leaves it', () => {
    const full = Object.assign(new Error('connect EAGAIN'), { code: 'EAGAIN', syscall: 'connect' });
    expect(isDatabaseAway(full)).toBe(true);
    expect(isDatabaseAway(Object.assign(full, { syscall: 'read' }))).toBe(false);
  });

  it.each(['23505', '42P01', '40001', '28P01', '3D000'])(
    'lets SQLSTATE %s be what it is',
    (code) => {
      expect(isDatabaseAway(reported(code))).toBe(false);
    },
  );

  it('does not take a missing file, a bare text or nothing for an absent database', () => {
    const missingFile = Object.assign(new Error('no such file'), {
      code: 'ENOENT',
      syscall: 'open',
    });
    for (const thrown of [missingFile, 'Query read timeout', undefined, new Error('other')]) {
      expect(isDatabaseAway(thrown)).toBe(false);
    }
  });
});

describe('what PostgreSQL reported', () => {
  it('is found below what TypeORM wraps around it', () => {
    expect(sqlStateOf(reported('23505', 'users_email'))).toBe('23505');
    expect(violatedConstraint(reported('23505', 'users_email'))).toBe('users_email');
  });

  it('is never read from other errors', () => {
    const system = Object.assign(new Error('refused'), { code: 'ECONNREFUSED', constraint: 'x' });
    expect(sqlStateOf(system)).toBeUndefined();
    expect(violatedConstraint(system)).toBeUndefined();
    expect(violatedConstraint(reported('42P01', 'users_email'))).toBeUndefined();
  });

  it('has a reason even where Node gives a code and no message', () => {
    const several = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
    expect(reasonOf(several)).toBe('ECONNREFUSED');
  });
});

describe('10.9 a statement that the server ended', () => {
  const ended = (code: string, after?: number) => {
    const error = reported(code);
    if (after !== undefined) noteDuration(error, after);
    return error;
  };

  it('is timed out when it took as long as it may, whatever the language of the server', () => {
    expect(isTimedOut(ended('57014', 3000), 3000)).toBe(true);
    expect(isTimedOut(ended('57014', 3050.5), 3000)).toBe(true);
  });

  it('was cancelled when it did not, and the database is away then', () => {
    expect(isTimedOut(ended('57014', 2999), 3000)).toBe(false);
    expect(isTimedOut(ended('57014'), 3000)).toBe(false);
    expect(isDatabaseAway(ended('57014', 10))).toBe(true);
  });

  it('is neither for any other reason', () => {
    expect(isTimedOut(ended('55P03', 5000), 3000)).toBe(false);
    expect(isTimedOut(new Error('canceling statement due to statement timeout'), 0)).toBe(false);
  });
});
