import { expect, it } from 'vitest';
import { parseAssertion, readAssertion } from '#domain/providers/saml/assertion.js';
import { assertionFields, assertionXml } from '../../../../support/saml/forger.js';

const ISSUER = 'https://idp.example';
const ASKED = {
  requestId: '_r',
  acsUrl: 'https://sp.example/acs',
  audience: 'sp',
  relayState: '',
};

const subjectWith = (nameIdFormat: string) => {
  const fields = { ...assertionFields(ASKED, ISSUER, 'ada@example.com'), nameIdFormat };
  const expected = { ...ASKED, issuer: ISSUER, now: Date.now() };
  return readAssertion(parseAssertion(assertionXml(fields)), expected);
};

it.each(['constructor', '__proto__', 'toString', ''])(
  'a NameID of the format "%s", which every object of JavaScript may have, is refused',
  (name) => {
    expect(() => subjectWith(name)).toThrow(expect.objectContaining({ code: 'sign_in_refused' }));
  },
);

it('a NameID of a lasting format is read', () => {
  const format = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';
  expect(subjectWith(format)).toMatchObject({ nameId: 'ada@example.com', format: 'emailAddress' });
});
