import { hash, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { completeChain } from '@svc/webauthn-policy';
import { PINNED_ROOTS } from '#domain/keys/authenticators/attestation/trust-anchors.js';
import { VENDOR_INTERMEDIATES } from '#domain/keys/authenticators/attestation/vendor-intermediates.js';

describe('the pinned roots', () => {
  it.each([
    [
      'CN=Yubico U2F Root CA Serial 457200631',
      '0fa1386f80eb8713263ae5c1d84deb455bdf08aea50ab05503cefee82b092d42',
      false,
    ],
    [
      'CN=Yubico FIDO Root CA Serial 450203556',
      '35f1a54b353bfb711e6d42adbeb76c0e9dead095018e6a94783ba2192fd6faad',
      false,
    ],
    [
      'CN=Yubico Attestation Root 1',
      '62760c6a6ef91679f454c8902b80fd009825b3f25da90f1fbace2ec6586cd5a8',
      true,
    ],
  ])('include %s by its fingerprint', (subject, sha256, fidoCaRequired) => {
    const root = PINNED_ROOTS.find(({ certificate }) => certificate.x509.subject === subject);
    expect(root && hash('sha256', root.certificate.x509.raw)).toBe(sha256);
    expect(root?.fidoCaRequired).toBe(fidoCaRequired);
  });

  it('are three and no more', () => {
    expect(PINNED_ROOTS).toHaveLength(3);
  });
});

describe('the intermediates in config/', () => {
  const YEAR_9999 = '9999-12-31T23:59:59.000Z';
  const PINS = [
    [
      'Attestation Intermediate A 1',
      'Attestation Root 1',
      '2024-12-01',
      '4698a1d3389c3ec60016c216250f1d0439922832d65142327436376dc2942b55',
    ],
    [
      'FIDO Attestation A 1',
      'Attestation Intermediate A 1',
      '2024-12-01',
      '4ebabc9cbc964f722c985f3784d057e9ef5dcf454dcb4f767fccca58cf16a4e8',
    ],
    [
      'Attestation Intermediate B 1',
      'Attestation Root 1',
      '2024-12-01',
      'd4cc3f456fdaf4e7812a21aab1dfe9d8e27d24e2fd2d6f21c9940109f0daa754',
    ],
    [
      'FIDO Attestation B 1',
      'Attestation Intermediate B 1',
      '2024-12-01',
      '4eadda86ff62cff987e111a07910d8554de42f71d5d6da7744610e09012dd319',
    ],
    [
      'FIDO Attestation B2 1',
      'Attestation Intermediate B 1',
      '2025-08-01',
      '3c6fe819adbd80afe75dc90af7bba34c95b2b7ac64384816e033f63b7c93848b',
    ],
  ] as const;

  it.each(PINS)(
    'include %s, issued by %s, by validity and fingerprint',
    (subject, issuer, from, sha256) => {
      const certificate = VENDOR_INTERMEDIATES.find(
        ({ x509 }) => x509.subject === `CN=Yubico ${subject}`,
      );
      expect(certificate && hash('sha256', certificate.x509.raw)).toBe(sha256);
      expect(certificate?.x509.issuer).toBe(`CN=Yubico ${issuer}`);
      expect(certificate?.x509.validFromDate.toISOString().slice(0, 10)).toBe(from);
      expect(certificate?.x509.validToDate.toISOString()).toBe(YEAR_9999);
    },
  );

  it('are five and no more, and the file says of each what the certificate says', () => {
    expect(VENDOR_INTERMEDIATES).toHaveLength(PINS.length);
    const file = new URL('../../../../../config/attestation-intermediates.json', import.meta.url);
    const rows: Record<string, string>[] = JSON.parse(readFileSync(file, 'utf8'));
    expect(
      rows.map(({ subject, issuer, not_before, not_after, sha256 }) => ({
        subject,
        issuer,
        sha256,
        from: Date.parse(not_before ?? ''),
        to: Date.parse(not_after ?? ''),
      })),
    ).toEqual(
      VENDOR_INTERMEDIATES.map(({ x509 }) => ({
        subject: x509.subject,
        issuer: x509.issuer,
        sha256: hash('sha256', x509.raw),
        from: x509.validFromDate.getTime(),
        to: x509.validToDate.getTime(),
      })),
    );
  });

  it('complete a path of real signatures to the pinned root, through a CA of FIDO', () => {
    const ofFido = VENDOR_INTERMEDIATES.filter(({ x509 }) => x509.subject.includes(' FIDO '));
    expect(ofFido).toHaveLength(3);
    for (const authority of ofFido) {
      const chain = completeChain(authority, PINNED_ROOTS);
      // In practice a leaf certificate stands before this authority. Here the authority takes the
      // leaf's place, so the chain has two certificates.
      expect(chain).toHaveLength(2);
      const [first, second] = chain;
      const root = PINNED_ROOTS.find(({ certificate }) =>
        second?.x509.checkIssued(certificate.x509),
      );
      expect(first?.x509.verify(second?.x509.publicKey as KeyObject)).toBe(true);
      expect(second?.x509.verify(root?.certificate.x509.publicKey as KeyObject)).toBe(true);
      expect(root?.fidoCaRequired).toBe(true);
    }
  });
});
