import { createPublicKey } from 'node:crypto';
import { describe, it } from 'vitest';
import {
  attackSuite,
  expectAccepted,
  expectAttackRefused,
  honestly,
  MALLORY,
  VICTIM,
  type Forge,
} from '../../support/saml/attack-suite.js';
import { makeSigningCertificate } from '../../support/saml/certificate.js';
import {
  afterIssuer,
  assertionFields,
  assertionXml,
  attributeStatement,
  digestOf,
  responseFields,
  responseXml,
  signatureOf,
} from '../../support/saml/forger.js';
import type { ResponseChanges } from '../../support/saml/forged-provider.js';
import { ALG, NS } from '../../support/saml/saml-names.js';

const foreign = makeSigningCertificate('foreign');

/**
 * Takes the signature of an assertion about the attacker, changes it, and puts it on an assertion
 * about the victim with the same ID.
 */
function moved(change: (signature: string, evilDigest: string) => string): Forge {
  return (asked, { entityId, signer }) => {
    const fields = assertionFields(asked, entityId, MALLORY);
    const evil = assertionXml({
      ...fields,
      nameId: VICTIM,
      attributes: [['mail', VICTIM]],
    });
    const signature = change(signatureOf(assertionXml(fields), signer), digestOf(evil));
    return responseXml(responseFields(asked, entityId), afterIssuer(evil, signature));
  };
}

/** Returns the `SignedInfo` of a signature, and a copy of it with another digest. */
function signedInfos(signature: string, digest: string): { genuine: string; forged: string } {
  const genuine = /<ds:SignedInfo>.*<\/ds:SignedInfo>/.exec(signature)?.[0] ?? '';
  return {
    genuine,
    forged: genuine.replace(/<ds:DigestValue>[^<]*/, `<ds:DigestValue>${digest}`),
  };
}

/** Repeats the `Reference` of a `SignedInfo`. */
function withSecondReference(signedInfo: string): string {
  const reference = /<ds:Reference.*<\/ds:Reference>/.exec(signedInfo)?.[0] ?? '';
  return signedInfo.replace(reference, reference + reference);
}

const XPATH_TRANSFORM =
  `<ds:Transform Algorithm="${ALG.xpath}"><ds:XPath>not(ancestor-or-self::*[local-name()='NameID'])` +
  '</ds:XPath></ds:Transform>';
const XSLT_TRANSFORM =
  `<ds:Transform Algorithm="${ALG.xslt}"><xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform" ` +
  'version="1.0"><xsl:template match="/"><xsl:copy-of select="/"></xsl:copy-of></xsl:template>' +
  '</xsl:stylesheet></ds:Transform>';

/**
 * Signatures by the provider's own key with algorithms, transforms or references that the service
 * does not accept.
 */
const UNACCEPTABLE: readonly (readonly [
  title: string,
  signature: ResponseChanges['signature'],
  reason: RegExp,
])[] = [
  ['RSA with SHA-1', { method: ALG.rsaSha1 }, /algorithm that is not accepted/],
  ['a SHA-1 digest', { digestMethod: ALG.sha1 }, /digest that is not accepted/],
  [
    'an XSLT transform',
    { transforms: [ALG.enveloped, XSLT_TRANSFORM, ALG.exclusive] },
    /other transforms/,
  ],
  [
    'an XPath transform',
    { transforms: [ALG.enveloped, XPATH_TRANSFORM, ALG.exclusive] },
    /other transforms/,
  ],
  [
    'an unknown transform',
    { transforms: [ALG.enveloped, 'urn:none', ALG.exclusive] },
    /other transforms/,
  ],
  [
    'the same transform many times',
    { transforms: [ALG.enveloped, ...Array.from({ length: 50 }, () => ALG.exclusive)] },
    /other transforms/,
  ],
  ['two references', { signedInfo: withSecondReference }, /other than one reference/],
  [
    'no reference',
    { signedInfo: (info) => info.replace(/<ds:Reference.*<\/ds:Reference>/, '') },
    /other than one reference/,
  ],
  [
    'an unknown canonicalization',
    { canonicalization: 'http://example.test/c14n' },
    /another canonicalization/,
  ],
];

describe('the signature of a SAML assertion', () => {
  const suite = attackSuite();

  it.each(UNACCEPTABLE)('is refused with %s', async (_, signature, reason) => {
    await expectAttackRefused(suite, { forged: honestly({ signature: signature ?? {} }), reason });
  });

  it.each([
    ["the provider's certificate", () => suite.corp.certificate.cert],
    ["the provider's certificate without line ends", () => suite.corp.certificate.base64],
    [
      "the provider's public key",
      () =>
        createPublicKey(suite.corp.certificate.cert)
          .export({ type: 'spki', format: 'pem' })
          .toString(),
    ],
  ])('is refused as an HMAC whose secret is %s', async (_, secret) => {
    await expectAttackRefused(suite, {
      forged: honestly({ email: VICTIM, signature: { method: ALG.hmacSha1, key: secret() } }),
      reason: /algorithm that is not accepted/,
    });
  });

  it.each([
    ['its own certificate in KeyInfo', foreign.base64],
    ['no KeyInfo', undefined],
  ])('is refused by a foreign key with %s', async (_, certificate) => {
    await expectAttackRefused(suite, {
      forged: honestly({ email: VICTIM, signature: { key: foreign.key, certificate } }),
      reason: /signature of no key/,
    });
  });

  it("is refused by a foreign key with the provider's certificate in KeyInfo", async () => {
    await expectAttackRefused(suite, {
      forged: honestly({ email: VICTIM, signature: { key: foreign.key } }),
      reason: /signature of no key/,
    });
  });

  it("is accepted by the provider's key without KeyInfo", async () => {
    await expectAccepted(suite, honestly({ signature: { certificate: undefined } }));
  });

  it('is refused when its reference is empty and covers the whole response', async () => {
    await expectAttackRefused(suite, {
      forged: (asked, { entityId, signer }) => {
        const assertion = assertionXml(assertionFields(asked, entityId, MALLORY));
        const response = (content: string) => responseXml(fields, content);
        const fields = responseFields(asked, entityId);
        const signature = signatureOf(assertion, {
          ...signer,
          uri: '',
          digested: response(assertion),
        });
        return response(afterIssuer(assertion, signature));
      },
      reason: /signature of another element/,
    });
  });

  it('is refused when its reference names another signed element', async () => {
    await expectAttackRefused(suite, {
      forged: (asked, { entityId, signer }) => {
        const evil = assertionXml(assertionFields(asked, entityId, VICTIM));
        const other = `<saml:Advice xmlns:saml="${NS.assertion}" ID="_other"></saml:Advice>`;
        const signature = signatureOf(other, signer);
        const extensions = `<samlp:Extensions>${other}</samlp:Extensions>`;
        return responseXml(
          responseFields(asked, entityId),
          extensions + afterIssuer(evil, signature),
        );
      },
      reason: /signature of another element/,
    });
  });

  it('is refused when it names the response and stands in the assertion', async () => {
    await expectAttackRefused(suite, {
      forged: (asked, { entityId, signer }) => {
        const assertion = assertionXml(assertionFields(asked, entityId, MALLORY));
        const fields = responseFields(asked, entityId);
        const response = responseXml(fields, assertion);
        return responseXml(fields, afterIssuer(assertion, signatureOf(response, signer)));
      },
      reason: /signature of another element/,
    });
  });

  it('is refused when an attribute was added after it was made', async () => {
    const added = attributeStatement([['mail', VICTIM]]);
    await expectAttackRefused(suite, {
      slug: 'attr',
      forged: honestly({
        afterSigning: (xml) => xml.replace('</saml:Assertion>', `${added}</saml:Assertion>`),
      }),
      reason: /changed after it was signed/,
    });
  });

  it('is refused when the NameID was changed after it was made', async () => {
    await expectAttackRefused(suite, {
      forged: honestly({ afterSigning: (xml) => xml.replaceAll(MALLORY, VICTIM) }),
      reason: /changed after it was signed/,
    });
  });

  it('is refused when it was made for another assertion with the same ID', async () => {
    await expectAttackRefused(suite, {
      forged: moved((signature) => signature),
      reason: /changed after it was signed/,
    });
  });

  it('is refused with a forged digest in a comment before the genuine one (CVE-2025-29775)', async () => {
    await expectAttackRefused(suite, {
      forged: moved((signature, digest) =>
        signature.replace('<ds:DigestValue>', `<ds:DigestValue><!--${digest}-->`),
      ),
      reason: /has a comment/,
    });
  });

  it('is refused with a comment in SignedInfo, although the comment changes no signed byte', async () => {
    await expectAttackRefused(suite, {
      forged: honestly({
        signature: {
          signature: (xml) => xml.replace('<ds:SignedInfo>', '<ds:SignedInfo><!--a comment-->'),
        },
      }),
      reason: /has a comment/,
    });
  });

  it.each([
    ['before', (genuine: string, forged: string) => forged + genuine],
    ['behind', (genuine: string, forged: string) => genuine + forged],
  ])(
    'is refused with a forged SignedInfo %s the genuine one (CVE-2025-29774)',
    async (_, order) => {
      await expectAttackRefused(suite, {
        forged: moved((signature, digest) => {
          const { genuine, forged } = signedInfos(signature, digest);
          return signature.replace(genuine, order(genuine, forged));
        }),
        reason: /unusual shape/,
      });
    },
  );

  it.each([
    [
      'inside the genuine one',
      (genuine: string, forged: string) =>
        genuine.replace('</ds:SignedInfo>', `${forged}</ds:SignedInfo>`),
    ],
    [
      'around the genuine one',
      (genuine: string, forged: string) =>
        forged.replace('</ds:SignedInfo>', `${genuine}</ds:SignedInfo>`),
    ],
  ])('is refused with a forged SignedInfo %s', async (_, nest) => {
    await expectAttackRefused(suite, {
      forged: moved((signature, digest) => {
        const { genuine, forged } = signedInfos(signature, digest);
        return signature.replace(genuine, nest(genuine, forged));
      }),
      reason: /other than one reference/,
    });
  });

  it('is refused with a forged SignedInfo in an object of the signature', async () => {
    await expectAttackRefused(suite, {
      forged: moved((signature, digest) => {
        const { genuine, forged } = signedInfos(signature, digest);
        return signature
          .replace(genuine, forged)
          .replace('</ds:Signature>', `<ds:Object>${genuine}</ds:Object></ds:Signature>`);
      }),
      reason: /unusual shape/,
    });
  });

  it('is refused with two digest values', async () => {
    await expectAttackRefused(suite, {
      forged: moved((signature, digest) =>
        signature.replace('<ds:DigestValue>', `<ds:DigestValue>${digest}</ds:DigestValue>$&`),
      ),
      reason: /unusual shape/,
    });
  });

  it('is refused without a value', async () => {
    await expectAttackRefused(suite, {
      forged: honestly({
        signature: {
          signature: (xml) => xml.replace(/<ds:SignatureValue>[^<]*/, '<ds:SignatureValue>'),
        },
      }),
      reason: /changed after it was signed/,
    });
  });
});
