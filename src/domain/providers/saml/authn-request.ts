import { SAML } from '@node-saml/node-saml';

/** The values of a SAML authentication request to a provider. */
export interface AuthnRequest {
  readonly id: string;
  readonly ssoUrl: string;
  readonly spEntityId: string;
  readonly acsUrl: string;
  /**
   * The private key that signs the request (PKCS#8 in PEM); undefined if the provider wants no
   * signed requests.
   */
  readonly signingKey: string | undefined;
}

/**
 * Returns the URL at the provider with an authentication request (SAML Bindings §3.4,
 * HTTP-Redirect), signed by RSA-SHA256 if there is a key.
 *
 * Only this file imports node-saml, and only to write the request. The library is not used for
 * responses, because it takes the time from the system clock and accepts SHA-1. It also accepts an
 * assertion without a signature of its own if the response is signed.
 *
 * The request states no format of the NameID and no kind of authentication, because several
 * providers refuse a request whose values differ from their configuration.
 */
export async function authnRequestUrl(request: AuthnRequest): Promise<URL> {
  const saml = new SAML({
    callbackUrl: request.acsUrl,
    issuer: request.spEntityId,
    entryPoint: request.ssoUrl,
    idpCert: 'none', // the constructor requires a value, which is used only for responses
    identifierFormat: null,
    disableRequestedAuthnContext: true,
    wantAssertionsSigned: true,
    wantAuthnResponseSigned: false,
    generateUniqueId: () => request.id,
    signatureAlgorithm: 'sha256',
    ...(request.signingKey === undefined ? {} : { privateKey: request.signingKey }),
  });
  return new URL(await saml.getAuthorizeUrlAsync('', undefined, {}));
}
