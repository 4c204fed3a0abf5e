import { describe, expect, it } from 'vitest';
import { issueAuthority } from '@svc/stand-ins/attestation-authority';
import { basicConstraints, extension, keyUsage, type Name } from '@svc/stand-ins/certificates';
import { completeChain, parseCertificate, trustAnchorFromPem } from '@svc/webauthn-policy';
import { ANCHOR, authorityOf, decide, leafOf, MODEL, NOW, ROOT, SUBJECT } from './statements.js';

const SECOND = 1000;
const later = (milliseconds: number) => new Date(NOW.getTime() + milliseconds);

/** Issues authorities one below the other, and returns them from the lowest to the highest. */
function authorities(count: number) {
  const chain = [ROOT];
  for (let depth = 1; depth <= count; depth += 1) {
    chain.unshift(authorityOf(`Level ${depth}`, chain[0]));
  }
  return chain.slice(0, -1);
}

describe('a path to a root', () => {
  it.each([0, 1, 4])('is accepted with %i authorities between', (count) => {
    const issuers = authorities(count);
    expect(decide({ leaf: leafOf(issuers[0]), issuers })).toBe(MODEL);
  });

  it('is refused with more than five certificates', () => {
    const issuers = authorities(5);
    expect(() => decide({ leaf: leafOf(issuers[0]), issuers })).toThrow('x5c is too long.');
  });

  it('is refused if a certificate was not issued by the next', () => {
    const [one, other] = [authorityOf('One'), authorityOf('Other')];
    expect(() => decide({ leaf: leafOf(one), issuers: [other] })).toThrow('x5c is not a chain');
    const below = authorityOf('Below', one);
    expect(() => decide({ leaf: leafOf(below), issuers: [below, other] })).toThrow(
      'x5c is not a chain',
    );
  });

  it('is refused if a certificate has the name of its issuer without the signature', () => {
    const message = "bears its issuer's name, not its signature.";
    const [genuine, impostor] = [authorityOf('Issuer'), authorityOf('Issuer')];
    expect(() => decide({ leaf: leafOf(impostor), issuers: [genuine] })).toThrow(message);
    const falseRoot = authorityOf('Test Root', { ...ROOT, privateKey: impostor.privateKey });
    expect(() => decide({ leaf: leafOf(falseRoot) })).toThrow(message);
  });

  it('is refused if it ends in no root that is trusted', () => {
    const stranger = authorityOf('Stranger');
    expect(() => decide({ leaf: leafOf(stranger) })).toThrow('does not end in a pinned root.');
    expect(() => decide({ anchors: [] })).toThrow('does not end in a pinned root.');
  });

  it('ends in the root of several with one name whose key made the signature', () => {
    const namesake = trustAnchorFromPem(
      authorityOf('Test Root', { ...ROOT, privateKey: authorityOf('x').privateKey }).pem,
    );
    for (const anchors of [
      [ANCHOR, namesake],
      [namesake, ANCHOR],
    ]) {
      expect(decide({ anchors })).toBe(MODEL);
    }
    expect(() => decide({ anchors: [namesake] })).toThrow("issuer's name, not its signature.");
  });
});

describe('a root in x5c', () => {
  it('is refused as the leaf', () => {
    const leaf = leafOf({ ...ROOT, subject: SUBJECT });
    expect(() => decide({ leaf })).toThrow('The attestation certificate is self-signed.');
  });

  it('is refused after the leaf', () => {
    expect(() => decide({ issuers: [ROOT] })).toThrow('x5c must not contain a root.');
  });

  it('is refused also if another authority issued the trusted certificate', () => {
    const middle = authorityOf('Middle');
    const anchors = [ANCHOR, trustAnchorFromPem(middle.pem)];
    const leaf = leafOf(middle);
    expect(decide({ leaf, anchors })).toBe(MODEL);
    expect(() => decide({ leaf, issuers: [middle], anchors })).toThrow(
      'x5c must not contain a root.',
    );
  });
});

describe('the validity of a certificate', () => {
  const validity = { notBefore: later(-10 * SECOND), notAfter: later(10 * SECOND) };
  const short = authorityOf('Short', ROOT, validity);
  it.each([
    ['of the leaf', { leaf: leafOf(ROOT, validity) }],
    ['of an authority', { leaf: leafOf(short), issuers: [short] }],
  ])('%s includes its first and its last second, and no other', (_, statement) => {
    for (const now of [validity.notBefore, validity.notAfter]) {
      expect(decide({ ...statement, now })).toBe(MODEL);
    }
    for (const now of [later(-11 * SECOND), later(11 * SECOND)]) {
      expect(() => decide({ ...statement, now })).toThrow('expired or not yet valid');
    }
    expect(() => decide({ ...statement, now: new Date(Number.NaN) })).toThrow('expired');
  });
});

describe('a critical extension that the policy does not know', () => {
  const unknown = (critical: boolean) => [
    basicConstraints(true),
    keyUsage('sign-certificates'),
    extension('1.2.3.4', Buffer.of(5, 0), critical),
  ];
  it.each([true, false])('is refused at the leaf only if it is critical: %s', (critical) => {
    const extensions = [extension('1.2.3.4', Buffer.of(5, 0), critical)];
    const decision = () => decide({ leaf: leafOf(ROOT, { extensions }) });
    if (critical) expect(decision).toThrow('unknown critical extension, 1.2.3.4.');
    else expect(decision()).toBeNull();
  });

  it.each([true, false])('is refused at an authority only if it is critical: %s', (critical) => {
    const issuer = authorityOf('Odd', ROOT, { extensions: unknown(critical) });
    const decision = () => decide({ leaf: leafOf(issuer), issuers: [issuer] });
    if (critical) expect(decision).toThrow('unknown critical extension, 1.2.3.4.');
    else expect(decision()).toBe(MODEL);
  });
});

describe('an authority in x5c', () => {
  it.each([
    ['without extensions, of version 1', { version: 1, extensions: [] }, 'is not a CA.'],
    ['without Basic Constraints', { extensions: [keyUsage('sign-certificates')] }, 'is not a CA.'],
    [
      'that Basic Constraints call no CA',
      { extensions: [basicConstraints(false), keyUsage('sign-certificates')] },
      'is not a CA.',
    ],
    ['without a Key Usage', { extensions: [basicConstraints(true)] }, 'may not sign certificates.'],
    [
      'whose Key Usage allows signatures of data alone',
      { extensions: [basicConstraints(true), keyUsage('sign-data')] },
      'may not sign certificates.',
    ],
  ] as const)('is refused %s', (_, overrides, message) => {
    const issuer = authorityOf('Issuer', ROOT, overrides);
    expect(() => decide({ leaf: leafOf(issuer), issuers: [issuer] })).toThrow(message);
  });

  const withPathLength = (length: number) => ({
    extensions: [basicConstraints(true, length), keyUsage('sign-certificates')],
  });

  it('may have as many authorities below it as its path length says', () => {
    const top = authorityOf('Top', ROOT, withPathLength(1));
    const middle = authorityOf('Middle', top, withPathLength(0));
    expect(decide({ leaf: leafOf(middle), issuers: [middle, top] })).toBe(MODEL);
    const low = authorityOf('Low', middle);
    expect(() => decide({ leaf: leafOf(low), issuers: [low, middle, top] })).toThrow(
      'The path is longer than an issuer in it allows.',
    );
  });

  it('counts for the path length of the root, too', () => {
    const root = authorityOf('Narrow', undefined, withPathLength(0));
    const anchors = [trustAnchorFromPem(root.pem)];
    expect(decide({ leaf: leafOf(root), anchors })).toBe(MODEL);
    const below = authorityOf('Below', root);
    expect(() => decide({ leaf: leafOf(below), issuers: [below], anchors })).toThrow(
      'The path is longer than an issuer in it allows.',
    );
  });
});

describe('a root that also signs authorities for other purposes', () => {
  const anchors = [trustAnchorFromPem(ROOT.pem, { fidoCaRequired: true })];
  const through = (...subject: Name) => {
    const issuer = authorityOf('', ROOT, { subject });
    return () => decide({ leaf: leafOf(issuer), issuers: [issuer], anchors });
  };
  const MISSING = 'does not run through a CA named "Yubico FIDO Attestation ...".';

  it('accepts a path through an authority for FIDO keys', () => {
    expect(through(['CN', 'Yubico FIDO Attestation A 1'])()).toBe(MODEL);
  });

  it('refuses every other path', () => {
    expect(through(['CN', 'Yubico PIV Attestation A 1'])).toThrow(MISSING);
    expect(through(['CN', 'Not Yubico FIDO Attestation A 1'])).toThrow(MISSING);
    expect(through(['O', 'Yubico FIDO Attestation A 1'])).toThrow(MISSING);
    expect(
      through(['CN', 'Yubico FIDO Attestation A 1'], ['CN', 'Yubico FIDO Attestation A 1']),
    ).toThrow(MISSING);
    expect(() => decide({ anchors })).toThrow(MISSING);
  });

  it('does not count the name of the leaf', () => {
    const subject = SUBJECT.with(3, ['CN', 'Yubico FIDO Attestation A 1']);
    expect(() => decide({ leaf: leafOf(ROOT, { subject }), anchors })).toThrow(MISSING);
  });
});

describe('completeChain', () => {
  const parsed = ({ der }: { readonly der: Buffer }) => parseCertificate(der);
  const complete = (leaf: { readonly der: Buffer }, known: readonly { readonly der: Buffer }[]) =>
    completeChain(parsed(leaf), [
      trustAnchorFromPem(ROOT.pem, { intermediates: known.map(parsed) }),
    ]).map(({ x509 }) => x509.raw);

  it('adds nothing to a leaf of the root, and to one that names itself as its issuer', () => {
    const leaf = leafOf();
    expect(complete(leaf, [authorityOf('Other')])).toEqual([leaf.der]);
    const own = leafOf({ ...ROOT, subject: SUBJECT });
    expect(complete(own, [])).toEqual([own.der]);
  });

  it('adds nothing to a leaf of one of several roots', () => {
    const leaf = leafOf();
    const other = trustAnchorFromPem(issueAuthority('Another Root', NOW).pem);
    for (const anchors of [
      [ANCHOR, other],
      [other, ANCHOR],
    ]) {
      expect(completeChain(parsed(leaf), anchors)).toHaveLength(1);
    }
  });

  it('adds the known authorities up to the root', () => {
    const [low, high] = authorities(2);
    const leaf = leafOf(low);
    expect(complete(leaf, [high!, authorityOf('Other'), low!])).toEqual([
      leaf.der,
      low!.der,
      high!.der,
    ]);
  });

  it('takes the authority of several with one name whose key made the signature', () => {
    const [genuine, namesake] = [authorityOf('Issuer'), authorityOf('Issuer')];
    const leaf = leafOf(genuine);
    expect(complete(leaf, [namesake, genuine])).toEqual([leaf.der, genuine.der]);
    expect(complete(leaf, [genuine, namesake])).toEqual([leaf.der, genuine.der]);
    // If no key made the signature, the path is refused later.
    expect(complete(leaf, [namesake])).toEqual([leaf.der, namesake.der]);
  });

  const ofUnknown = (...subject: Name) => {
    const leaf = leafOf(authorityOf('', ROOT, { subject }));
    return () => complete(leaf, [authorityOf('Other')]);
  };
  const unknown = (name: string) =>
    `the certificate of the issuer "${name}", and so cannot tell who made this key.`;

  it('refuses a leaf whose issuer is not known, and names the issuer on one line', () => {
    const refused = ofUnknown(['O', 'VendörÄÖ 鍵'], ['CN', 'Unknown']);
    expect(refused).toThrow(unknown('O=VendörÄÖ 鍵, CN=Unknown'));
  });

  it('cuts a long name of an unknown issuer behind a whole character', () => {
    const refused = ofUnknown(['CN', `${'x'.repeat(116)}🔑🔑`]);
    expect(refused).toThrow(unknown(`CN=${'x'.repeat(116)}🔑`));
  });

  it.each([
    ['a change of direction', '\u202e'],
    ['an isolate', '\u2066'],
    ['a character of no width', '\u200b'],
    ['a separator of lines', '\u2028'],
    ['a separator of paragraphs', '\u2029'],
    ['an invisible tag', '\u{e0041}'],
  ])('leaves %s out of the name of an unknown issuer', (_, hidden) => {
    expect(ofUnknown(['CN', `Un${hidden}known`])).toThrow(unknown('CN=Unknown'));
  });

  it.each(['\n', '\r', '\u001b', '\u0085'])(
    'shows no control character of an unknown issuer: %j',
    (control) => {
      expect(ofUnknown(['CN', `Un${control}known`])).toThrow(/"CN=Un(?:\\[0-9A-F]{2})*known"/);
    },
  );

  it('ends after so many authorities that the path is refused', () => {
    const known = authorities(8);
    const chain = complete(leafOf(known[0]), known);
    expect(chain).toHaveLength(6);
    expect(() => decide({ leaf: leafOf(known[0]), issuers: known.slice(0, 5) })).toThrow(
      'x5c is too long.',
    );
  });
});
