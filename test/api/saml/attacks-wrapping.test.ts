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
import {
  afterIssuer,
  assertionFields,
  assertionXml,
  responseFields,
  responseXml,
  signatureOf,
  type Asked,
} from '../../support/saml/forger.js';
import type { ForgedProvider } from '../../support/saml/forged-provider.js';
import { NS } from '../../support/saml/saml-names.js';

/** The parts from which each attack by signature wrapping builds its response. */
interface Parts {
  /** The attacker's own assertion, without its signature. */
  readonly own: string;
  /** The signature by which the provider signed the attacker's own assertion. */
  readonly signature: string;
  /** The attacker's own assertion with its signature. */
  readonly signed: string;
  /** An unsigned assertion about the victim. */
  readonly evil: string;
  /** An unsigned assertion about the victim that has the ID of the attacker's own. */
  readonly evilTwin: string;
  /** Puts assertions into a response. */
  readonly around: (content: string) => string;
}

function partsOf(asked: Asked, { entityId, signer }: ForgedProvider): Parts {
  const fields = assertionFields(asked, entityId, MALLORY);
  const own = assertionXml(fields);
  const signature = signatureOf(own, signer);
  const evilFields = assertionFields(asked, entityId, VICTIM);
  return {
    own,
    signature,
    signed: afterIssuer(own, signature),
    evil: assertionXml(evilFields),
    evilTwin: assertionXml({ ...evilFields, id: fields.id }),
    around: (content) => responseXml(responseFields(asked, entityId), content),
  };
}

/** Puts XML before the end tag of an element. */
function inside(element: string, xml: string): string {
  const end = element.lastIndexOf('</');
  return element.slice(0, end) + xml + element.slice(end);
}

/**
 * Takes a response that is signed, with a signed assertion, and builds a response about the victim
 * around it.
 */
function wrapResponse(wrap: (evil: string, original: string, signature: string) => string): Forge {
  return (asked, provider) => {
    const { signed, evil, around } = partsOf(asked, provider);
    const original = around(signed);
    return wrap(around(evil), original, signatureOf(original, provider.signer));
  };
}

/** Builds an attack whose response has the assertions that `wrap` returns. */
const wrapAssertion =
  (wrap: (parts: Parts) => string): Forge =>
  (asked, provider) => {
    const parts = partsOf(asked, provider);
    return parts.around(wrap(parts));
  };

const honestAssertion = wrapAssertion(({ signed }) => signed);
const honestResponse = wrapResponse((_evil, original, signature) =>
  afterIssuer(original, signature),
);

// The eight forms of signature wrapping (XSW1 to XSW8) in "On Breaking SAML: Be Whoever You Want to
// Be" (Somorovsky and others, 2012).
const FORMS: readonly (readonly [form: string, honest: Forge, forged: Forge, reason: RegExp])[] = [
  [
    'XSW1: the signed response stands inside the signature of a forged response',
    honestResponse,
    wrapResponse((evil, original, signature) => afterIssuer(evil, inside(signature, original))),
    /more than one assertion/,
  ],
  [
    'XSW2: the signed response stands before its signature in a forged response',
    honestResponse,
    wrapResponse((evil, original, signature) => afterIssuer(evil, original + signature)),
    /more than one assertion/,
  ],
  [
    'XSW3: a forged assertion stands before the signed one',
    honestAssertion,
    wrapAssertion(({ evil, signed }) => evil + signed),
    /more than one assertion/,
  ],
  [
    'XSW4: the signed assertion stands inside a forged one',
    honestAssertion,
    wrapAssertion(({ evil, signed }) => inside(evil, signed)),
    /more than one assertion/,
  ],
  [
    'XSW5: a forged assertion has the signature, and the original stands behind it',
    honestAssertion,
    wrapAssertion(({ evil, signature, own }) => afterIssuer(evil, signature) + own),
    /more than one assertion/,
  ],
  [
    'XSW6: a forged assertion has the signature, and the original stands inside the signature',
    honestAssertion,
    wrapAssertion(({ evil, signature, own }) => afterIssuer(evil, inside(signature, own))),
    /more than one assertion/,
  ],
  [
    'XSW7: a forged assertion with the same ID stands in an extension of the response',
    honestAssertion,
    wrapAssertion(
      ({ evilTwin, signed }) => `<samlp:Extensions>${evilTwin}</samlp:Extensions>${signed}`,
    ),
    /more than one assertion/,
  ],
  [
    'XSW8: a forged assertion has the signature, and the original stands in an object of the signature',
    honestAssertion,
    wrapAssertion(({ evil, signature, own }) =>
      afterIssuer(evil, inside(signature, `<ds:Object>${own}</ds:Object>`)),
    ),
    /more than one assertion/,
  ],
];

/**
 * Further responses with a forged and a signed assertion, in other places than in the eight forms.
 */
const FURTHER: readonly (readonly [
  form: string,
  wrap: (parts: Parts) => string,
  reason: RegExp,
])[] = [
  [
    'a forged assertion stands behind the signed one',
    ({ evil, signed }) => signed + evil,
    /more than one assertion/,
  ],
  [
    'two assertions, both signed',
    ({ signed }) => signed + signed.replace('ID="_', 'ID="_second-'),
    /more than one assertion/,
  ],
  [
    'a forged assertion has the same ID',
    ({ evilTwin, signed }) => evilTwin + signed,
    /more than one assertion/,
  ],
  [
    'a forged assertion with the same ID stands behind the signed one',
    ({ evilTwin, signed }) => signed + evilTwin,
    /more than one assertion/,
  ],
  [
    'a forged assertion with the same ID and the signature stands before the original',
    ({ evilTwin, signature, own }) => afterIssuer(evilTwin, signature) + own,
    /more than one assertion/,
  ],
  [
    'the signed assertion stands inside the subject of a forged one',
    ({ evil, signed }) => evil.replace('</saml:Subject>', `${signed}</saml:Subject>`),
    /more than one assertion/,
  ],
  [
    'the signed assertion stands in the advice of a forged one',
    ({ evil, signed }) => inside(evil, `<saml:Advice>${signed}</saml:Advice>`),
    /more than one assertion/,
  ],
  [
    'the signed assertion stands in an element of no namespace',
    ({ signed }) => `<wrapper>${signed}</wrapper>`,
    /assertion is not at its place/,
  ],
  [
    'the forged assertion is of another namespace',
    ({ evil, signed }) => evil.replaceAll(NS.assertion, 'urn:other') + signed,
    /more than one assertion/,
  ],
  [
    'the signature of the assertion stands beside it, in the response',
    ({ signature, own }) => signature + own,
    /signature of another element/,
  ],
  [
    'the signature stands at a place of the assertion that the schema does not know',
    ({ signature, own }) => own.replace('</saml:Subject>', `${signature}</saml:Subject>`),
    /signature that is not at its place/,
  ],
];

describe('signature wrapping in a SAML response', () => {
  const suite = attackSuite();

  it.each(FORMS)('refuses %s', async (_, honest, forged, reason) => {
    await expectAttackRefused(suite, { honest, forged, reason });
  });

  it.each(FURTHER)('refuses a response in which %s', async (_, wrap, reason) => {
    await expectAttackRefused(suite, {
      honest: honestAssertion,
      forged: wrapAssertion(wrap),
      reason,
    });
  });

  it('refuses an unsigned assertion in a signed response', async () => {
    await expectAttackRefused(suite, {
      honest: honestly({ signs: 'both' }),
      forged: honestly({ signs: 'response' }),
      reason: /is not signed/,
    });
  });

  it('refuses an unsigned assertion in an unsigned response', async () => {
    await expectAttackRefused(suite, {
      forged: honestly({ signs: 'none' }),
      reason: /is not signed/,
    });
  });

  it('accepts a signed assertion in an unsigned response, and one in a signed response', async () => {
    await expectAccepted(suite, honestly({ signs: 'assertion' }));
    await expectAccepted(suite, honestly({ signs: 'both' }));
  });
});
