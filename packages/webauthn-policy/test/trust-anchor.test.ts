import { describe, expect, it } from 'vitest';
import { issueAttestationLeaf, issueAuthority } from '@svc/stand-ins/attestation-authority';
import { basicConstraints, keyUsage } from '@svc/stand-ins/certificates';
import { trustAnchorFromPem } from '@svc/webauthn-policy';

const NOW = new Date('2026-01-15T12:00:00Z');

describe('trustAnchorFromPem', () => {
  it('takes a root', () => {
    const root = issueAuthority('Test Root', NOW);
    expect(trustAnchorFromPem(root.pem)).toMatchObject({ fidoCaRequired: false });
  });

  it('takes a root without a Key Usage, as OpenSSL makes one', () => {
    const plain = issueAuthority('Plain', NOW, undefined, { extensions: [basicConstraints(true)] });
    expect(trustAnchorFromPem(plain.pem)).toMatchObject({ fidoCaRequired: false });
  });

  it('refuses a leaf, a CA that may not sign certificates, and text that is not a certificate', () => {
    const root = issueAuthority('Test Root', NOW);
    const leaf = issueAttestationLeaf(Buffer.alloc(16), NOW, root);
    expect(() => trustAnchorFromPem(leaf.pem)).toThrow(/^not a certificate authority: C=SE/);
    const extensions = [basicConstraints(true), keyUsage('sign-data')];
    const mute = issueAuthority('Mute', NOW, undefined, { extensions });
    expect(() => trustAnchorFromPem(mute.pem)).toThrow('not a certificate authority: CN=Mute');
    expect(() => trustAnchorFromPem('not PEM')).toThrow(Error);
  });
});
