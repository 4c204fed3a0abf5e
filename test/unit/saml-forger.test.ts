import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { makeSigningCertificate } from '../support/saml/certificate.js';
import {
  assertionFields,
  assertionXml,
  responseFields,
  responseXml,
  signed,
  type Asked,
} from '../support/saml/forger.js';
import { encoded } from '../support/saml/saml-browser.js';

/**
 * The part of node-saml that reads a response. The types of node-saml itself would add the types of
 * browsers to the program.
 */
interface NodeSaml {
  SAML: new (settings: object) => {
    validatePostResponseAsync(
      form: object,
    ): Promise<{ profile: { nameID: string; mail?: string } | null }>;
  };
}

const ASKED: Asked = {
  requestId: '_request',
  acsUrl: 'https://svc.test/saml/acs',
  audience: 'https://svc.test/saml/metadata',
  relayState: 'state',
};

// The forger writes canonical XML by hand. These tests check with node-saml that its valid
// responses are valid.
describe("the tests' forger of SAML responses", () => {
  const own = makeSigningCertificate('own');
  const foreign = makeSigningCertificate('foreign');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an untyped import of a CommonJS package
  const { SAML } = createRequire(import.meta.url)('@node-saml/node-saml') as NodeSaml;
  const verifier = (settings: object) =>
    new SAML({
      idpCert: own.cert,
      issuer: ASKED.audience,
      audience: ASKED.audience,
      callbackUrl: ASKED.acsUrl,
      ...settings,
    });
  const assertion = assertionXml(assertionFields(ASKED, 'https://idp.test', 'ada@x.example'));
  const respond = (content: string) =>
    responseXml(responseFields(ASKED, 'https://idp.test'), content);
  const signer = { key: own.key, certificate: own.base64 };

  it('signs an assertion that node-saml accepts', async () => {
    const response = encoded(respond(signed(assertion, signer)));
    const { profile } = await verifier({
      wantAuthnResponseSigned: false,
    }).validatePostResponseAsync({ SAMLResponse: response });
    expect(profile).toMatchObject({ nameID: 'ada@x.example', mail: 'ada@x.example' });
  });

  it('signs the response as well, and node-saml accepts both signatures', async () => {
    const response = encoded(signed(respond(signed(assertion, signer)), signer));
    const { profile } = await verifier({ wantAuthnResponseSigned: true }).validatePostResponseAsync(
      {
        SAMLResponse: response,
      },
    );
    expect(profile?.nameID).toBe('ada@x.example');
  });

  it('signs with a foreign key, and node-saml refuses', async () => {
    const response = encoded(respond(signed(assertion, { key: foreign.key })));
    await expect(
      verifier({ wantAuthnResponseSigned: false }).validatePostResponseAsync({
        SAMLResponse: response,
      }),
    ).rejects.toThrow('Invalid signature');
  });
});
