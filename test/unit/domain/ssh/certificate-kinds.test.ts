import { describe, expect, it } from 'vitest';
import { certificateKindOf } from '../../../../src/domain/ssh/ssh-certificates.repository.js';

const MAIL = 'alice@example.com';
const PLAIN = {
  sessionId: 's',
  userId: 'u',
  email: MAIL,
  keyId: 'k',
  keyFingerprint: 'SHA256:k',
  caFingerprint: 'SHA256:ca',
  isSecurityKey: false,
  attestationRequired: false,
  attestation: undefined,
  principalsDomain: undefined,
  principals: [MAIL],
  principalsElsewhere: [MAIL],
  groupPrincipals: undefined,
  host: undefined,
  ttlSeconds: undefined,
  mostOnRecord: undefined,
  auditId: 'a',
  origin: { requestId: 'r', ip: undefined, userAgent: undefined },
};

describe('the statement of an SSH certificate', () => {
  it('leaves nothing out for a security key, or for two lists of principals', () => {
    const ofPlainKey = certificateKindOf(PLAIN);
    expect(certificateKindOf({ ...PLAIN, principalsElsewhere: [MAIL] })).toBe(ofPlainKey);
    const whole = certificateKindOf({ ...PLAIN, isSecurityKey: true });
    expect(whole).not.toBe(ofPlainKey);
    expect(certificateKindOf({ ...PLAIN, principals: [MAIL, 'alice'] })).toBe(whole);
    expect(certificateKindOf({ ...PLAIN, principalsElsewhere: [] })).toBe(whole);
  });
});
