import { describe, expect, it } from 'vitest';
import {
  attackSuite,
  expectAccepted,
  expectAttackRefused,
  honestly,
  MALLORY,
  VICTIM,
  type Attack,
} from '../../support/saml/attack-suite.js';
import type { ResponseChanges } from '../../support/saml/forged-provider.js';
import { signed } from '../../support/saml/forger.js';
import { NAME_ID } from '../../support/saml/saml-names.js';

const minutes = (count: number) => new Date(Date.now() + count * 60_000);
const inAssertion = (assertion: ResponseChanges['assertion']): ResponseChanges => ({
  assertion: assertion ?? {},
});
const replaced = (pattern: RegExp | string, text: string): ResponseChanges => ({
  beforeSigning: (xml) => {
    const changed = xml.replace(pattern, text);
    if (changed === xml) throw new Error(`the assertion has no ${String(pattern)}`);
    return changed;
  },
});

/**
 * Assertions that the provider has signed but that must not sign a user in: the changes to a valid
 * one, and the reason in the log.
 */
const WRONG: readonly (readonly [title: string, changes: () => ResponseChanges, reason: RegExp])[] =
  [
    [
      'another audience',
      () => inAssertion({ audience: 'https://other.example' }),
      /check the audience/,
    ],
    [
      'no audience',
      () => replaced(/<saml:AudienceRestriction>.*<\/saml:AudienceRestriction>/, ''),
      /check the audience/,
    ],
    [
      'our audience in one restriction and another one in a second',
      () =>
        replaced(
          '</saml:AudienceRestriction>',
          '</saml:AudienceRestriction><saml:AudienceRestriction><saml:Audience>https://other.example' +
            '</saml:Audience></saml:AudienceRestriction>',
        ),
      /check the audience/,
    ],
    [
      'another recipient',
      () => inAssertion({ recipient: 'https://other.example/saml/acs' }),
      /check the URL of the assertion consumer/,
    ],
    [
      'no recipient',
      () => replaced(/ Recipient="[^"]*"/, ''),
      /check the URL of the assertion consumer/,
    ],
    [
      'another destination of the response',
      () => ({ response: { destination: 'https://other.example/saml/acs' } }),
      /meant for another URL/,
    ],
    [
      'an expiry 6 minutes ago',
      () => inAssertion({ notBefore: minutes(-20), notOnOrAfter: minutes(-6) }),
      /has expired/,
    ],
    [
      'a confirmation that expired 6 minutes ago',
      () =>
        replaced(
          /(<saml:SubjectConfirmationData[^>]*NotOnOrAfter=")[^"]*/,
          `$1${minutes(-6).toISOString()}`,
        ),
      /has expired/,
    ],
    [
      'conditions that expired 6 minutes ago',
      () =>
        replaced(/(<saml:Conditions[^>]*NotOnOrAfter=")[^"]*/, `$1${minutes(-6).toISOString()}`),
      /has expired/,
    ],
    [
      'a confirmation without an expiry',
      () => replaced(/(<saml:SubjectConfirmationData[^>]*) NotOnOrAfter="[^"]*"/, '$1'),
      /never expires/,
    ],
    [
      'a beginning in 6 minutes',
      () => inAssertion({ notBefore: minutes(6), notOnOrAfter: minutes(10) }),
      /not valid yet/,
    ],
    [
      'a malformed time',
      () => replaced(/(<saml:Conditions NotBefore=")[^"]*/, '$1yesterday'),
      /malformed time/,
    ],
    ['no conditions', () => replaced(/<saml:Conditions.*<\/saml:Conditions>/, ''), /no Conditions/],
    [
      'a holder of a key as confirmation',
      () => replaced('cm:bearer', 'cm:holder-of-key'),
      /not confirmed for a browser/,
    ],
    [
      'no confirmation',
      () => replaced(/<saml:SubjectConfirmation .*<\/saml:SubjectConfirmation>/, ''),
      /no SubjectConfirmation/,
    ],
    [
      'no statement of an authentication',
      () => replaced(/<saml:AuthnStatement.*<\/saml:AuthnStatement>/, ''),
      /does not say that you were authenticated/,
    ],
    [
      'another issuer',
      () => inAssertion({ issuer: 'https://other.example' }),
      /names another issuer/,
    ],
    [
      'another issuer of the response',
      () => ({ response: { issuer: 'https://other.example' } }),
      /names another provider/,
    ],
    [
      'an issuer with a space',
      () => inAssertion({ issuer: ' https://other.example ' }),
      /names another issuer/,
    ],
    [
      'the status Responder',
      () => ({ response: { status: 'urn:oasis:names:tc:SAML:2.0:status:Responder' } }),
      /answered with an error/,
    ],
    [
      'the status AuthnFailed',
      () => ({ response: { status: 'urn:oasis:names:tc:SAML:2.0:status:AuthnFailed' } }),
      /could not authenticate you|answered with an error/,
    ],
    [
      'a transient NameID',
      () => inAssertion({ nameIdFormat: NAME_ID.transient }),
      /names no lasting account/,
    ],
    [
      'a NameID of no stated format',
      () => inAssertion({ nameIdFormat: 'urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified' }),
      /names no lasting account/,
    ],
    ['an empty NameID', () => inAssertion({ nameId: '' }), /malformed NameID/],
    ['no NameID', () => replaced(/<saml:NameID.*<\/saml:NameID>/, ''), /has no NameID/],
    [
      'two NameIDs',
      () =>
        replaced(
          /<saml:NameID.*<\/saml:NameID>/,
          `$&<saml:NameID Format="${NAME_ID.email}">${VICTIM}</saml:NameID>`,
        ),
      /more than one NameID/,
    ],
    [
      'an element in the NameID',
      () => inAssertion({ nameId: `<b>${VICTIM}</b>.forged.example` }),
      /malformed NameID/,
    ],
    [
      'a processing instruction in the NameID',
      () => inAssertion({ nameId: `${VICTIM}<?x y?>.forged.example` }),
      /processing instruction/,
    ],
    [
      'two addresses in the NameID',
      () => inAssertion({ nameId: `${VICTIM}, ${MALLORY}` }),
      /address that is malformed/,
    ],
    [
      'a line end in the NameID',
      () => inAssertion({ nameId: `${VICTIM}\n.forged.example` }),
      /malformed NameID/,
    ],
    [
      'the answer to another request',
      () => ({ assertion: { inResponseTo: '_another' }, response: { inResponseTo: '_another' } }),
      /answers no request/,
    ],
    [
      'the answer to another request in the assertion alone',
      () => inAssertion({ inResponseTo: '_another' }),
      /answers no request/,
    ],
    [
      'the answer to another request in the response alone',
      () => ({ response: { inResponseTo: '_another' } }),
      /answers two requests/,
    ],
    [
      'the answer to no request, as a sign-in that the provider began',
      () => ({ assertion: { inResponseTo: undefined }, response: { inResponseTo: undefined } }),
      /answers no request/,
    ],
    [
      'the answer to no request in the assertion alone',
      () => inAssertion({ inResponseTo: undefined }),
      /answers another request/,
    ],
  ];

describe('a SAML assertion that the provider signed', () => {
  const suite = attackSuite();

  it.each(WRONG)('is refused with %s', async (_, changes, reason) => {
    await expectAttackRefused(suite, { forged: honestly(changes()), reason });
  });

  it('is accepted 4 minutes after its expiry and 4 minutes before its beginning', async () => {
    await expectAccepted(
      suite,
      honestly(inAssertion({ notBefore: minutes(-20), notOnOrAfter: minutes(-4) })),
    );
    await expectAccepted(
      suite,
      honestly(inAssertion({ notBefore: minutes(4), notOnOrAfter: minutes(10) })),
    );
  });

  it('is accepted with further audiences in the same restriction', async () => {
    await expectAccepted(
      suite,
      honestly(
        replaced('<saml:Audience>', '<saml:Audience>https://other.example</saml:Audience>$&'),
      ),
    );
  });

  // Exclusive canonicalization drops comments and turns CDATA into text. So the provider's
  // signature stays valid after this change.
  const hidden = (nameId: string): Attack['forged'] => {
    return (asked, provider) => {
      const plain = nameId.replaceAll('<!---->', '').replaceAll(/<!\[CDATA\[|\]\]>/g, '');
      const xml = provider.respond(asked, { assertion: { nameId: plain } });
      return xml.replace(`>${plain}</saml:NameID>`, `>${nameId}</saml:NameID>`);
    };
  };
  it('is refused with a comment in the NameID that leaves the address of another user before it', async () => {
    await expectAttackRefused(suite, {
      honest: hidden(MALLORY),
      forged: hidden('admin@victim.com<!---->.attacker.com'),
      reason: /has a comment/,
    });
  });

  it('is refused with CDATA in the NameID', async () => {
    await expectAttackRefused(suite, {
      honest: hidden(MALLORY),
      forged: hidden('<![CDATA[admin@victim.com]]>.attacker.com'),
      reason: /CDATA section/,
    });
  });

  it('is refused when it is encrypted, with the name of the setting to change', async () => {
    const page = await expectAttackRefused(suite, {
      forged: (asked, provider) =>
        provider.respond(asked, {
          signs: 'none',
          afterSigning: (xml) =>
            `<saml:EncryptedAssertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">` +
            `<xenc:EncryptedData xmlns:xenc="http://www.w3.org/2001/04/xmlenc#"><xenc:CipherData>` +
            `<xenc:CipherValue>${Buffer.from(xml).toString('base64')}</xenc:CipherValue>` +
            `</xenc:CipherData></xenc:EncryptedData></saml:EncryptedAssertion>`,
        }),
      reason: /encrypts assertions/,
    });
    expect(page.text).toContain('Assertion Encryption');
  });

  it('is refused with an encrypted assertion beside it', async () => {
    await expectAttackRefused(suite, {
      forged: (asked, provider) =>
        provider.respond(asked, {
          afterSigning: (xml) =>
            `${xml}<saml:EncryptedAssertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">` +
            `</saml:EncryptedAssertion>`,
        }),
      reason: /encrypts assertions/,
    });
  });

  it('is refused with an encrypted NameID', async () => {
    await expectAttackRefused(suite, {
      forged: honestly(
        replaced(/<saml:NameID.*<\/saml:NameID>/, '<saml:EncryptedID></saml:EncryptedID>'),
      ),
      reason: /encrypts assertions/,
    });
  });

  const mails = (...attributes: (readonly [string, ...string[]])[]): ResponseChanges =>
    inAssertion({ attributes });
  it.each([
    [
      'no attribute of the e-mail address',
      mails(['other', VICTIM]),
      /no value for the attribute mail/,
    ],
    ['an empty e-mail address', mails(['mail', '']), /no value for the attribute mail/],
    ['an attribute without a value', mails(['mail']), /no value for the attribute mail/],
    [
      'two e-mail addresses in one attribute',
      mails(['mail', MALLORY, VICTIM]),
      /more than one value for the attribute mail/,
    ],
    [
      'two attributes of the e-mail address',
      mails(['mail', MALLORY], ['mail', VICTIM]),
      /more than one value for the attribute mail/,
    ],
    [
      'an element in the e-mail address',
      mails(['mail', `<b>${VICTIM}</b>`]),
      /no value for the attribute mail/,
    ],
    ['a malformed e-mail address', mails(['mail', 'mallory']), /address that is malformed/],
    [
      'a display name at the e-mail address',
      mails(['mail', `Admin &lt;${VICTIM}&gt;`]),
      /address that is malformed/,
    ],
  ])('is refused with %s', async (_, changes, reason) => {
    await expectAttackRefused(suite, { slug: 'attr', forged: honestly(changes), reason });
  });

  it('is refused when the e-mail address is in a signed statement of a second subject', async () => {
    await expectAttackRefused(suite, {
      forged: (asked, provider) => {
        const xml = provider.respond(asked, { signs: 'none' });
        const assertion = /<saml:Assertion.*<\/saml:Assertion>/.exec(xml)?.[0] ?? '';
        const subject = /<saml:Subject>.*<\/saml:Subject>/.exec(assertion)?.[0] ?? '';
        const doubled = assertion.replace(subject, subject + subject.replaceAll(MALLORY, VICTIM));
        return xml.replace(assertion, signed(doubled, provider.signer));
      },
      reason: /more than one Subject/,
    });
  });
});
