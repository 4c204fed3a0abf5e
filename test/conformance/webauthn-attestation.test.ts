import { generateKeyPairSync, sign } from 'node:crypto';
import { OctetString } from 'asn1js';
import { describe, expect, it } from 'vitest';
import { FLAG } from '@svc/stand-ins/authenticator-messages';
import {
  aaguidExtension,
  AAGUID_EXTENSION,
  basicConstraints,
  extension,
  keyUsage,
} from '@svc/stand-ins/certificates';
import {
  AAGUID,
  aaguidBytes,
  ceremonies,
  CHALLENGE,
  leafSubject,
  NOW,
  refusal,
  register,
  registration,
} from '../support/soft-key.js';

const DAY_MS = 86_400_000;
const LAST_YEAR = {
  notBefore: new Date(+NOW - 730 * DAY_MS),
  notAfter: new Date(+NOW - 365 * DAY_MS),
};
const NEXT_YEAR = {
  notBefore: new Date(+NOW + 365 * DAY_MS),
  notAfter: new Date(+NOW + 730 * DAY_MS),
};

/** Reasons that several tests expect. */
const OTHER_OU =
  'The attestation certificate\'s organizational unit is not "Authenticator Attestation".';
const NO_COUNTRY = "The attestation certificate's subject has no ISO 3166 country.";

describe('attestation formats (WebAuthn §8)', () => {
  it('accepts packed and reads every field', async () => {
    const registered = await register({
      flags: FLAG.userPresent | FLAG.userVerified,
      signCount: 5,
    });
    expect(registered).toEqual({
      credentialId: Buffer.alloc(32, 0x1d),
      publicKey: expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n/),
      signCount: 5,
      attestation: 'packed',
      aaguid: AAGUID,
      userVerified: true,
      canVerifyUser: true,
      transports: ['usb', 'nfc'],
    });
  });

  it('accepts fido-u2f, a key that can only assert presence, and names its model by the certificate', async () => {
    await expect(register({ format: 'fido-u2f' })).resolves.toMatchObject({
      attestation: 'fido-u2f',
      aaguid: AAGUID,
      userVerified: false,
      canVerifyUser: false,
    });
  });

  it('ignores user verification in a fido-u2f registration, since U2F does not sign it', async () => {
    const attempt = register({ format: 'fido-u2f', flags: FLAG.userPresent | FLAG.userVerified });
    await expect(attempt).resolves.toMatchObject({ userVerified: false, canVerifyUser: false });
  });

  it.each([
    ['none', 'attestation_missing'],
    ['tpm', 'device_passkey'],
    ['apple', 'device_passkey'],
    ['android-key', 'device_passkey'],
    ['android-safetynet', 'device_passkey'],
    ['None', 'attestation_rejected'],
    ['Packed', 'attestation_rejected'],
    ['compound', 'attestation_rejected'],
    ['', 'attestation_rejected'],
  ])('10.24 refuses the format "%s" as %s', async (fmt, code) => {
    await expect(register({ fmt })).rejects.toMatchObject(refusal(expect.any(String), code));
  });

  it.each([
    ['the attachment platform', { authenticatorAttachment: 'platform' }, ['usb']],
    ['the transport internal', {}, ['internal']],
    ['the transport hybrid', {}, ['hybrid']],
  ])(
    '10.24 explains a refusal by %s, and refuses no key because of it',
    async (_, own, transports) => {
      const { credential, rootPem } = registration();
      const verify = (roots: string[], fmt?: string) => {
        const made = fmt === undefined ? credential : registration({ fmt }).credential;
        return ceremonies({ roots }).verifyRegistration({
          credential: { ...made, ...own, response: { ...made.response, transports } },
          challenge: CHALLENGE,
          now: NOW,
        });
      };
      const explained = refusal(expect.any(String), 'device_passkey');
      await expect(verify([])).rejects.toMatchObject(explained);
      await expect(verify([], 'none')).rejects.toMatchObject(explained);
      await expect(verify([rootPem])).resolves.toMatchObject({ aaguid: AAGUID });
    },
  );

  it('10.24 explains a synced passkey without attestation', async () => {
    const attempt = register({ fmt: 'none', flags: FLAG.userPresent | 0x08 });
    await expect(attempt).rejects.toMatchObject(refusal(expect.any(String), 'device_passkey'));
  });

  it('refuses a fido-u2f statement under the name packed', async () => {
    await expect(register({ format: 'fido-u2f', fmt: 'packed' })).rejects.toMatchObject(
      refusal('Only ES256 (-7) attestation signatures are accepted.'),
    );
  });

  it('refuses self-attestation, which has no x5c', async () => {
    const reason = 'Self-attestation is not accepted: x5c is missing.';
    await expect(register({ statement: withoutChain })).rejects.toMatchObject(refusal(reason));
    await expect(register({ format: 'fido-u2f', statement: withoutChain })).rejects.toMatchObject(
      refusal(reason),
    );
    await expect(
      register({ statement: (honest) => honest.set('x5c', null) }),
    ).rejects.toMatchObject(refusal(reason));
    await expect(register({ x5c: () => [] })).rejects.toMatchObject(refusal(reason));
  });

  it.each([-257, -8, -35, '-7'])('refuses a packed signature algorithm %s', async (alg) => {
    await expect(register({ statement: (honest) => honest.set('alg', alg) })).rejects.toMatchObject(
      refusal('Only ES256 (-7) attestation signatures are accepted.'),
    );
  });

  it.each([
    ['an unknown member', 'ecdaaKeyId', Buffer.alloc(4)],
    ['x5c that is not a list', 'x5c', Buffer.alloc(4)],
    ['a certificate that is not bytes', 'x5c', ['MIIC']],
    ['a signature that is not bytes', 'sig', 'c2ln'],
  ])('refuses a packed statement with %s', async (_, member, value) => {
    await expect(
      register({ statement: (honest) => honest.set(member, value) }),
    ).rejects.toMatchObject(refusal('The packed attestation statement is malformed.'));
  });

  it.each(['packed', 'fido-u2f'] as const)(
    'refuses a %s signature over other data',
    async (format) => {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const forged = sign('sha256', Buffer.from('something else'), privateKey);
      await expect(
        register({ format, statement: (honest) => honest.set('sig', forged) }),
      ).rejects.toMatchObject(refusal('The attestation signature does not verify.'));
    },
  );

  it('refuses fido-u2f with two certificates, though they form a good chain', async () => {
    await expect(
      register({ format: 'fido-u2f', intermediates: [{ name: 'Test CA' }] }),
    ).rejects.toMatchObject(refusal('A fido-u2f attestation carries exactly one certificate.'));
  });
});

describe('the path to a pinned root', () => {
  it('refuses a self-signed leaf', async () => {
    const reason = 'The attestation certificate is self-signed.';
    await expect(register({ x5c: (_, root) => [root] })).rejects.toMatchObject(refusal(reason));
    const { credential } = registration({ x5c: (_, root) => [root] });
    const attempt = ceremonies().verifyRegistration({ credential, challenge: CHALLENGE, now: NOW });
    await expect(attempt).rejects.toMatchObject(refusal(reason));
  });

  it('refuses a leaf of an unknown root', async () => {
    const { credential } = registration();
    const { rootPem } = registration({ root: { subject: [['CN', 'Another Root']] } });
    const server = ceremonies({ roots: [rootPem] });
    await expect(
      server.verifyRegistration({ credential, challenge: CHALLENGE, now: NOW }),
    ).rejects.toMatchObject(refusal('The path does not end in a pinned root.'));
  });

  it("refuses a leaf that bears the pinned root's name and another key's signature", async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    await expect(register({ leafSigner: privateKey })).rejects.toMatchObject(
      refusal("A certificate in x5c bears its issuer's name, not its signature."),
    );
  });

  it('refuses a leaf that bears the name of a genuine intermediate and the signature of another key', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const forged = { intermediates: [{ name: 'Test CA' }], leafSigner: privateKey };
    await expect(register(forged)).rejects.toMatchObject(
      refusal("A certificate in x5c bears its issuer's name, not its signature."),
    );
  });

  it("refuses an unknown root inside x5c, though it has the pinned root's name", async () => {
    const { credential } = registration({ x5c: (honest, root) => [...honest, root] });
    const { rootPem } = registration();
    const server = ceremonies({ roots: [rootPem] });
    await expect(
      server.verifyRegistration({ credential, challenge: CHALLENGE, now: NOW }),
    ).rejects.toMatchObject(refusal('x5c must not contain a root.'));
  });

  it('refuses the pinned root inside x5c', async () => {
    await expect(register({ x5c: (honest, root) => [...honest, root] })).rejects.toMatchObject(
      refusal('x5c must not contain a root.'),
    );
  });

  it('finds the right one of two pinned roots of one name', async () => {
    const { credential, rootPem } = registration();
    const namesake = registration().rootPem;
    const server = ceremonies({ roots: [namesake, rootPem] });
    await expect(
      server.verifyRegistration({ credential, challenge: CHALLENGE, now: NOW }),
    ).resolves.toMatchObject({ aaguid: AAGUID });
  });

  it.each([
    ['an expired leaf', { leaf: LAST_YEAR }],
    ['a leaf of the future', { leaf: NEXT_YEAR }],
    ['an expired intermediate', { intermediates: [{ name: 'Test CA', ...LAST_YEAR }] }],
  ])('refuses %s', async (_, tampering) => {
    await expect(register(tampering)).rejects.toMatchObject(
      refusal('A certificate in x5c is expired or not yet valid.'),
    );
  });

  it('accepts a chain of two levels with intermediates', async () => {
    const intermediates = [{ name: 'Test CA' }, { name: 'Test Sub CA' }];
    await expect(register({ intermediates })).resolves.toMatchObject({ aaguid: AAGUID });
  });

  it.each([
    [
      'without cA',
      [basicConstraints(false), keyUsage('sign-certificates')],
      'An issuer in the path is not a CA.',
    ],
    [
      'without Basic Constraints',
      [keyUsage('sign-certificates')],
      'An issuer in the path is not a CA.',
    ],
    [
      'without keyCertSign',
      [basicConstraints(true), keyUsage('sign-data')],
      'An issuer in the path may not sign certificates.',
    ],
    [
      'without Key Usage',
      [basicConstraints(true)],
      'An issuer in the path may not sign certificates.',
    ],
  ])('refuses an intermediate %s', async (_, extensions, reason) => {
    await expect(
      register({ intermediates: [{ name: 'Test CA', extensions }] }),
    ).rejects.toMatchObject(refusal(reason));
  });

  it('accepts a root without Key Usage, which restricts nothing', async () => {
    const root = { extensions: [basicConstraints(true)] };
    await expect(register({ root })).resolves.toMatchObject({ aaguid: AAGUID });
  });

  it('refuses a path longer than the path length of a CA in it', async () => {
    const one = [basicConstraints(true, 0), keyUsage('sign-certificates')];
    const reason = 'The path is longer than an issuer in it allows.';
    const below = { name: 'Test Sub CA' };
    await expect(
      register({ intermediates: [{ name: 'Test CA', extensions: one }, below] }),
    ).rejects.toMatchObject(refusal(reason));
    await expect(
      register({ root: { extensions: one }, intermediates: [below] }),
    ).rejects.toMatchObject(refusal(reason));
    await expect(register({ root: { extensions: one } })).resolves.toMatchObject({
      aaguid: AAGUID,
    });
  });

  it('refuses certificates in x5c that do not issue one another', async () => {
    const intermediates = [{ name: 'Test CA' }, { name: 'Test Sub CA' }];
    await expect(register({ intermediates, x5c: unordered })).rejects.toMatchObject(
      refusal('x5c is not a chain: a certificate was not issued by the next.'),
    );
  });

  it('refuses an x5c of six certificates before it verifies any', async () => {
    await expect(register({ x5c: ([leaf]) => Array(6).fill(leaf) })).rejects.toMatchObject(
      refusal('x5c is too long.'),
    );
  });

  it('under the multi-purpose root accepts a path through a FIDO attestation CA', async () => {
    const intermediates = [
      { name: 'Yubico Attestation Intermediate B 1' },
      { name: 'Yubico FIDO Attestation B 1' },
    ];
    const attempt = register({ intermediates }, { fidoCaRequired: true });
    await expect(attempt).resolves.toMatchObject({ aaguid: AAGUID });
  });

  it.each([
    [
      'a PIV-shaped chain',
      [{ name: 'Yubico Attestation Intermediate B 1' }, { name: 'Yubico PIV Attestation B 1' }],
    ],
    ['a CA whose name only contains the FIDO one', [{ name: 'Not Yubico FIDO Attestation B 1' }]],
    ['a leaf that bears the name of the FIDO CA itself', []],
  ])('under the multi-purpose root refuses %s', async (_, intermediates) => {
    const leaf = { subject: leafSubject({ CN: 'Yubico FIDO Attestation B 1' }) };
    await expect(register({ intermediates, leaf }, { fidoCaRequired: true })).rejects.toMatchObject(
      refusal('The path does not run through a CA named "Yubico FIDO Attestation ...".'),
    );
  });
});

describe('the attestation certificate (WebAuthn §8.2.1)', () => {
  it('refuses a version 1 certificate', async () => {
    await expect(register({ leaf: { version: 1, extensions: [] } })).rejects.toMatchObject(
      refusal('The attestation certificate is not X.509 version 3.'),
    );
  });

  it('refuses cA true', async () => {
    const extensions = [basicConstraints(true), aaguidExtension(aaguidBytes())];
    await expect(register({ leaf: { extensions } })).rejects.toMatchObject(
      refusal('The attestation certificate is a CA.'),
    );
  });

  it.each(['packed', 'fido-u2f'] as const)(
    'accepts a %s leaf without Basic Constraints',
    async (format) => {
      const extensions = [aaguidExtension(aaguidBytes())];
      await expect(register({ format, leaf: { extensions } })).resolves.toMatchObject({
        aaguid: AAGUID,
      });
    },
  );

  it.each([
    ['another OU', { OU: 'Authenticator attestation' }, OTHER_OU],
    ['no country', { C: null }, NO_COUNTRY],
    ['a country that is not an ISO 3166 code', { C: 'Sweden' }, NO_COUNTRY],
    ['no organization', { O: null }, "The attestation certificate's subject has no organization."],
    ['no common name', { CN: null }, "The attestation certificate's subject has no common name."],
  ] as const)('refuses a packed leaf with %s', async (_, different, reason) => {
    await expect(register({ leaf: { subject: leafSubject(different) } })).rejects.toMatchObject(
      refusal(reason),
    );
  });

  it('refuses a packed leaf that has the right OU beside another', async () => {
    const subject = [...leafSubject({}), ['OU', 'PIV'] as const];
    await expect(register({ leaf: { subject } })).rejects.toMatchObject(refusal(OTHER_OU));
  });

  it('requires no subject of a fido-u2f leaf', async () => {
    const leaf = { subject: [['CN', 'Yubico U2F EE Serial 1']] as const };
    await expect(register({ format: 'fido-u2f', leaf })).resolves.toMatchObject({ aaguid: AAGUID });
  });

  it.each(['packed', 'fido-u2f'] as const)(
    'refuses a %s leaf with a key on P-384',
    async (format) => {
      const keys = generateKeyPairSync('ec', { namedCurve: 'P-384' });
      await expect(register({ format, leaf: { keys } })).rejects.toMatchObject(
        refusal("The attestation certificate's key is not on P-256."),
      );
    },
  );

  it.each([
    ['is critical', aaguidDer(aaguidBytes()), true, 'The AAGUID extension is marked critical.'],
    ['is in one OCTET STRING only', aaguidBytes(), false, 'The AAGUID extension is malformed.'],
    [
      'has 15 bytes',
      aaguidDer(aaguidBytes().subarray(1)),
      false,
      'The AAGUID extension is malformed.',
    ],
    ['has 17 bytes', aaguidDer(Buffer.alloc(17)), false, 'The AAGUID extension is malformed.'],
    [
      'has a byte after it',
      Buffer.concat([aaguidDer(aaguidBytes()), Buffer.of(0)]),
      false,
      'The AAGUID extension is malformed.',
    ],
    ['is empty', Buffer.alloc(0), false, 'The AAGUID extension is malformed.'],
  ])('refuses an AAGUID extension that %s', async (_, der, critical, reason) => {
    const extensions = [basicConstraints(false), extension(AAGUID_EXTENSION, der, critical)];
    await expect(register({ leaf: { extensions } })).rejects.toMatchObject(refusal(reason));
    await expect(register({ format: 'fido-u2f', leaf: { extensions } })).rejects.toMatchObject(
      refusal(reason),
    );
  });

  it('refuses a duplicate extension', async () => {
    const extensions = [aaguidExtension(aaguidBytes()), aaguidExtension(Buffer.alloc(16, 7))];
    await expect(register({ leaf: { extensions } })).rejects.toMatchObject(
      refusal('A certificate in x5c repeats an extension.'),
    );
  });

  it('refuses an unknown critical extension', async () => {
    const extensions = [extension('1.3.6.1.4.1.41482.3.99', Buffer.of(5, 0), true)];
    await expect(register({ leaf: { extensions } })).rejects.toMatchObject(
      refusal('A certificate in x5c has an unknown critical extension, 1.3.6.1.4.1.41482.3.99.'),
    );
  });

  it.each([
    [
      'bytes after its end',
      (der: Buffer) => Buffer.concat([der, Buffer.of(0)]),
      'A certificate in x5c is not plain DER.',
    ],
    [
      'an indefinite length',
      (der: Buffer) => Buffer.concat([Buffer.of(0x30, 0x80), der.subarray(4), Buffer.alloc(2)]),
      'A certificate in x5c is not plain DER.',
    ],
    [
      'half of it missing',
      (der: Buffer) => der.subarray(0, der.length / 2),
      'A certificate in x5c is malformed.',
    ],
    ['nothing in it', () => Buffer.alloc(0), 'A certificate in x5c is malformed.'],
  ])('refuses a certificate with %s', async (_, spoil, reason) => {
    await expect(register({ x5c: ([leaf]) => [spoil(leaf!)] })).rejects.toMatchObject(
      refusal(reason),
    );
  });

  it('accepts a genuine early leaf whose RSA signature declares unused bits', async () => {
    const root = { keys: generateKeyPairSync('rsa', { modulusLength: 2048 }) };
    const attempt = register({ format: 'fido-u2f', root, x5c: claimUnusedBits });
    await expect(attempt).resolves.toMatchObject({ attestation: 'fido-u2f' });
  });
});

describe('the model of the key', () => {
  const disagreement = 'The AAGUID of the certificate and that of the authenticator data disagree.';

  it('refuses an AAGUID in authData that disagrees with the certificate, under packed', async () => {
    const attempt = register({ aaguid: Buffer.alloc(16, 1) });
    await expect(attempt).rejects.toMatchObject(refusal(disagreement));
  });

  it('refuses an AAGUID in authData that disagrees with the certificate, under fido-u2f', async () => {
    const attempt = register({ format: 'fido-u2f', aaguid: Buffer.alloc(16, 1) });
    await expect(attempt).rejects.toMatchObject(refusal(disagreement));
  });

  it('refuses a zero AAGUID in authData under packed against a certificate with the extension', async () => {
    const attempt = register({ aaguid: Buffer.alloc(16) });
    await expect(attempt).rejects.toMatchObject(refusal(disagreement));
  });

  const unnamed = { extensions: [basicConstraints(false)] };

  it('accepts a certificate without the AAGUID extension where no policy is set: the model is unknown', async () => {
    await expect(register({ leaf: unnamed })).resolves.toMatchObject({ aaguid: null });
  });

  it('refuses a certificate without the AAGUID extension where a policy is set', async () => {
    const policy = { kind: 'list', aaguids: new Set([AAGUID]) } as const;
    const attempt = register({ leaf: unnamed }, { policy });
    await expect(attempt).rejects.toMatchObject(refusal(expect.any(String), 'model_not_allowed'));
  });

  it('refuses a model outside the list', async () => {
    const aaguids = new Set(['00000000-0000-4000-8000-000000000000']);
    const attempt = register({}, { policy: { kind: 'list', aaguids } });
    await expect(attempt).rejects.toMatchObject(
      refusal(expect.stringContaining('YubiKey 5 Series with NFC'), 'model_not_allowed'),
    );
  });

  it('accepts a model on the list', async () => {
    const attempt = register({}, { policy: { kind: 'list', aaguids: new Set([AAGUID]) } });
    await expect(attempt).resolves.toMatchObject({ aaguid: AAGUID });
  });

  it('applies the model policy to the enrollment', async () => {
    await expect(register({}, { policy: { kind: 'fips-only' } })).rejects.toMatchObject(
      refusal(expect.any(String), 'model_not_allowed'),
    );
    const attempt = register({}, { policy: { kind: 'yubikey-5' } });
    await expect(attempt).resolves.toMatchObject({ aaguid: AAGUID });
  });
});

function withoutChain(statement: Map<string, unknown>): Map<string, unknown> {
  statement.delete('x5c');
  return statement;
}

function unordered([leaf, ...authorities]: Buffer[]): Buffer[] {
  return [leaf!, ...authorities.toReversed()];
}

/**
 * Imitates a fault of the first U2F keys. Their certificates declare 2 of the 2048 bits of the
 * signature as unused.
 */
function claimUnusedBits([leaf]: Buffer[]): Buffer[] {
  leaf!.writeUInt8(2, leaf!.length - 257);
  return [leaf!];
}

function aaguidDer(aaguid: Buffer): Buffer {
  return Buffer.from(new OctetString({ valueHex: aaguid }).toBER());
}
