import { describe, expect, it } from 'vitest';
import { KMS_LIMITS, pauseBeforeRetry, timeForAttempt } from '#platform/kms/call-policy.js';
import { admit, afterAnswer, afterFailure, CLOSED, type Circuit } from '#platform/kms/circuit.js';
import { faultOf, KmsFault } from '#platform/kms/kms-fault.js';
import { keyProblem } from '#platform/kms/key-check.js';

const fault = (kind: KmsFault['kind']) => new KmsFault(kind, 'x');

describe('the retries of a call to KMS', () => {
  const failed = { attempts: 1, elapsed: 0, fault: fault('throttled'), chance: 0.5 };

  it('pause with full jitter, up to a limit that doubles', () => {
    const pauses = [1, 2, 3].map((attempts) =>
      pauseBeforeRetry({ ...failed, attempts }, KMS_LIMITS),
    );
    expect(pauses).toEqual([50, 100, 200]);
    expect(pauseBeforeRetry({ ...failed, chance: 0 }, KMS_LIMITS)).toBe(0);
    const short = { ...KMS_LIMITS, longestPause: 10 };
    expect(pauseBeforeRetry({ ...failed, attempts: 3 }, short)).toBe(5);
  });

  it('end with the last attempt and with the time of the call', () => {
    expect(pauseBeforeRetry({ ...failed, attempts: 4 }, KMS_LIMITS)).toBeUndefined();
    expect(pauseBeforeRetry({ ...failed, elapsed: 4990 }, KMS_LIMITS)).toBeUndefined();
    expect([timeForAttempt(0, KMS_LIMITS), timeForAttempt(4000, KMS_LIMITS)]).toEqual([2000, 1000]);
  });

  it.each([
    ['throttled', true],
    ['failing', true],
    ['unreachable', true],
    ['timeout', true],
    ['denied', false],
    ['disabled', false],
    ['missing', false],
    ['credentials', false],
    ['refused', false],
  ] as const)('after the fault %s: %s', (kind, isRepeated) => {
    const pause = pauseBeforeRetry({ ...failed, fault: fault(kind) }, KMS_LIMITS);
    expect(pause !== undefined).toBe(isRepeated);
  });
});

describe('the circuit of a key', () => {
  const open: Circuit = { state: 'open', until: 1000, opening: 2000 };

  it('opens after five failures in a row', () => {
    let circuit = CLOSED;
    for (let n = 0; n < 4; n += 1) circuit = afterFailure(circuit, false, 0, KMS_LIMITS);
    expect(admit(circuit, 0, KMS_LIMITS).wait).toBeUndefined();
    circuit = afterFailure(circuit, false, 0, KMS_LIMITS);
    expect(admit(circuit, 0, KMS_LIMITS).wait).toBe(2000);
  });

  it('lets one probe through when its time is over, and refuses the calls beside it', () => {
    const probe = admit(open, 1000, KMS_LIMITS);
    expect([probe.wait, probe.isProbe]).toEqual([undefined, true]);
    const beside = admit(probe.circuit, 1000, KMS_LIMITS);
    expect([beside.wait, beside.isProbe]).toEqual([2000, false]);
  });

  it('stays open for twice the time after a failed probe, and for 30 seconds at most', () => {
    const { circuit } = admit(open, 1000, KMS_LIMITS);
    expect(afterFailure(circuit, true, 1000, KMS_LIMITS)).toEqual({
      state: 'open',
      until: 5000,
      opening: 4000,
    });
    const long: Circuit = { state: 'probing', opening: 20_000 };
    expect(afterFailure(long, true, 0, KMS_LIMITS)).toMatchObject({ opening: 30_000 });
  });

  it('does not count calls that were sent before it opened', () => {
    expect(afterFailure(open, false, 500, KMS_LIMITS)).toEqual(open);
    const probing: Circuit = { state: 'probing', opening: 2000 };
    expect(afterFailure(probing, false, 500, KMS_LIMITS)).toEqual(probing);
    expect(afterAnswer(open, false)).toEqual(open);
    expect(afterAnswer(probing, false)).toEqual(probing);
    expect(afterAnswer(probing, true)).toEqual(CLOSED);
  });
});

describe('an error of the SDK', () => {
  const metadata = (httpStatusCode: number) => ({ $metadata: { httpStatusCode } });
  it.each([
    [{ name: 'ThrottlingException', ...metadata(400) }, 'throttled'],
    [{ name: 'AccessDeniedException', ...metadata(400) }, 'denied'],
    [{ name: 'DisabledException', ...metadata(400) }, 'disabled'],
    [{ name: 'NotFoundException', ...metadata(400) }, 'missing'],
    [{ name: 'ValidationException', ...metadata(400) }, 'refused'],
    [{ name: 'SyntaxError', ...metadata(200) }, 'failing'],
    [{ name: 'Unknown', ...metadata(503) }, 'failing'],
    [{ name: 'Error', code: 'ECONNREFUSED' }, 'unreachable'],
    [{ name: 'Error', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }, 'unreachable'],
    [{ name: 'CredentialsProviderError' }, 'credentials'],
    [{ name: 'Error', message: 'Region is missing' }, 'region'],
  ])('%j is %s, and its text is not passed on', (error, kind) => {
    const sorted = faultOf({ message: 'planted arn:aws:iam::1:role/x', ...error });
    expect(sorted.kind).toBe(kind);
    expect(sorted.message).not.toMatch(/planted|arn:/);
  });
});

describe('a key that does not fit its use', () => {
  const ec = {
    arn: 'a',
    state: 'Enabled',
    usage: 'SIGN_VERIFY',
    spec: 'ECC_NIST_P256',
    algorithms: ['ECDSA_SHA_256'],
  };
  it.each([
    [{}, undefined],
    [{ state: 'Disabled' }, 'the key is not enabled'],
    [{ state: 'PendingDeletion' }, 'the key is not enabled'],
    [{ usage: 'KEY_AGREEMENT' }, 'the key must have the usage SIGN_VERIFY'],
    [{ spec: 'ECC_NIST_P384' }, 'the key must have the key spec ECC_NIST_P256'],
    [{ spec: 'constructor' }, 'the key must have the key spec ECC_NIST_P256'],
    [{ algorithms: [] }, 'the key must offer the algorithm ECDSA_SHA_256'],
  ])('%j: %s', (changed, problem) => {
    expect(keyProblem('ES256', { ...ec, ...changed })).toBe(problem);
  });
});
