import { connect } from 'node:net';
import { DatabaseError } from 'pg';
import { QueryFailedError, QueryRunnerAlreadyReleasedError } from 'typeorm';
import { describe, expect, it } from 'vitest';
import {
  isConnectionRefused,
  isDatabaseAway,
  isOutage,
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
  ])('classifies SQLSTATE %s: %s', (code) => {
    expect(isDatabaseAway(reported(code))).toBe(true);
  });

  it.each([
    'Connection terminated unexpectedly',
    'timeout exceeded when trying to connect',
    'Query read timeout',
  ])('recognizes the message of the driver: %s', (message) => {
    expect(isDatabaseAway(new Error(message))).toBe(true);
    expect(isDatabaseAway(new QueryFailedError('SELECT 1', [], new Error(message)))).toBe(true);
  });

  it('recognizes a refused connection, and a query runner whose connection ended', async () => {
    expect(isDatabaseAway(await refusedConnection('/nonexistent/.s.PGSQL.5432'))).toBe(true);
    expect(isDatabaseAway(new QueryRunnerAlreadyReleasedError())).toBe(true);
  });

  it('recognizes a full accept queue, as a frozen server leaves it', () => {
    const full = Object.assign(new Error('connect EAGAIN'), { code: 'EAGAIN', syscall: 'connect' });
    expect(isDatabaseAway(full)).toBe(true);
    expect(isDatabaseAway(Object.assign(full, { syscall: 'read' }))).toBe(false);
  });

  it.each(['23505', '42P01', '40001', '28P01', '3D000'])(
    'does not change the meaning of SQLSTATE %s',
    (code) => {
      expect(isDatabaseAway(reported(code))).toBe(false);
    },
  );

  it.each(['28000', '28P01', '3D000'])('%s is a refused connection', (code) => {
    expect([isConnectionRefused(reported(code)), isOutage(reported(code))]).toEqual([true, true]);
  });

  it.each(['42501', '55000'])('%s is one if PostgreSQL checked a new connection', (code) => {
    const refused = Object.assign(new Error('refused'), { code, routine: 'CheckMyDatabase' });
    const statement = Object.assign(new Error('refused'), { code, routine: 'aclcheck_error' });
    expect([refused, statement].map(isOutage)).toEqual([true, false]);
    expect(isOutage(reported(code))).toBe(false);
  });

  it.each([
    'CERT_HAS_EXPIRED',
    'CERT_NOT_YET_VALID',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
  ])('%s is an outage of a service that runs, and ends a start', (code) => {
    const fault = Object.assign(new Error('as TLS said it'), { code });
    expect([isOutage(fault), isDatabaseAway(fault)]).toEqual([true, false]);
  });

  it('does not take a missing file, plain text or no error for an absent database', () => {
    const missingFile = Object.assign(new Error('no such file'), {
      code: 'ENOENT',
      syscall: 'open',
    });
    for (const thrown of [missingFile, 'Query read timeout', undefined, new Error('other')]) {
      expect([isDatabaseAway(thrown), isOutage(thrown)]).toEqual([false, false]);
    }
  });
});

describe('the error of PostgreSQL', () => {
  it('is found inside the error of TypeORM', () => {
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

  it('is a timeout when it ran for the whole limit, in any language of the server', () => {
    expect(isTimedOut(ended('57014', 3000), 3000)).toBe(true);
    expect(isTimedOut(ended('57014', 3050.5), 3000)).toBe(true);
  });

  it('means that the database is away when it was cancelled before the limit', () => {
    expect(isTimedOut(ended('57014', 2999), 3000)).toBe(false);
    expect(isTimedOut(ended('57014'), 3000)).toBe(false);
    expect(isDatabaseAway(ended('57014', 10))).toBe(true);
  });

  it('is neither a timeout nor an absence for any other reason', () => {
    expect(isTimedOut(ended('55P03', 5000), 3000)).toBe(false);
    expect(isTimedOut(new Error('canceling statement due to statement timeout'), 0)).toBe(false);
  });
});
