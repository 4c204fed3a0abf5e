import { SAML } from '@node-saml/node-saml';

/** The facts of a request to a provider. */
export interface AuthnRequest {
  readonly id: string;
  readonly ssoUrl: string;
  readonly spEntityId: string;
  readonly acsUrl: string;
  /**
   * The private key of the service provider, PKCS#8 in PEM, if the provider wants signed requests.
   */
  readonly signingKey: string | undefined;
}

/**
 * Returns the address at the provider with an authentication request (SAML Bindings §3.4,
 * HTTP-Redirect), signed by RSA-SHA256 if there is a key.
 *
 * This file alone imports node-saml. It writes the request; it reads no response: it takes the time
 * from the system clock, accepts SHA-1, and lets the signature of a response stand for that of its
 * assertion. The request names no format of the NameID and no kind of authentication: several
 * providers refuse a request that names another one than is configured there.
 */
export async function authnRequestUrl(request: AuthnRequest): Promise<URL> {
  const saml = new SAML({
    callbackUrl: request.acsUrl,
    issuer: request.spEntityId,
    entryPoint: request.ssoUrl,
    idpCert: 'none', // required by the constructor, and only used for responses
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
