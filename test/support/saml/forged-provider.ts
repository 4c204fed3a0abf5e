import { createServer } from 'node:http';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { makeSigningCertificate, type SigningCertificate } from './certificate.js';
import {
  assertionFields,
  assertionXml,
  responseFields,
  responseXml,
  signed,
  type Asked,
  type AssertionFields,
  type ResponseFields,
  type SignatureOptions,
} from './forger.js';
import { BINDING, NAME_ID, NS } from './saml-names.js';

/** Changes to an otherwise correct SAML response. */
export interface ResponseChanges {
  readonly email?: string;
  readonly assertion?: Partial<AssertionFields>;
  readonly response?: Partial<ResponseFields>;
  readonly signature?: Partial<SignatureOptions>;
  /** The elements that are signed; by default only the assertion, as Microsoft Entra ID does. */
  readonly signs?: 'assertion' | 'response' | 'both' | 'none';
  /** Returns a changed text of the assertion, which is then signed. */
  readonly beforeSigning?: (assertion: string) => string;
  /** Returns a changed text of the signed assertion, so that the signature may not match. */
  readonly afterSigning?: (assertion: string) => string;
}

/** A SAML provider that serves metadata, and whose responses the test makes. */
export interface ForgedProvider {
  readonly origin: string;
  readonly entityId: string;
  readonly metadataUrl: string;
  readonly certificate: SigningCertificate;
  /** The key and certificate with which a correct response is signed. */
  readonly signer: SignatureOptions;
  /** Makes a response to a SAML request. It is correct except for the given changes. */
  respond(asked: Asked, changes?: ResponseChanges): string;
  close(): Promise<void>;
}

/** Starts a server on loopback that serves the metadata of a SAML provider. */
export async function startForgedProvider(path = 'forged'): Promise<ForgedProvider> {
  const certificate = makeSigningCertificate(path);
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/samlmetadata+xml' });
    response.end(metadataXml(origin, entityId, [certificate.base64]));
  });
  const origin = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  const entityId = `${origin}/${path}`;
  const signer = { key: certificate.key, certificate: certificate.base64 };
  return {
    origin,
    entityId,
    metadataUrl: `${origin}/metadata`,
    certificate,
    signer,
    respond: (asked, changes = {}) => respond({ entityId, signer }, asked, changes),
    close: () => stopServer(server),
  };
}

/** Returns the SAML metadata of an identity provider with these certificates, in base64. */
export function metadataXml(
  origin: string,
  entityId: string,
  certificates: readonly string[],
): string {
  const keys = certificates.map(
    (certificate) =>
      `<md:KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="${NS.signature}"><ds:X509Data>` +
      `<ds:X509Certificate>${certificate}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`,
  );
  return (
    `<md:EntityDescriptor xmlns:md="${NS.metadata}" entityID="${entityId}">` +
    `<md:IDPSSODescriptor protocolSupportEnumeration="${NS.protocol}">${keys.join('')}` +
    `<md:NameIDFormat>${NAME_ID.email}</md:NameIDFormat>` +
    `<md:SingleSignOnService Binding="${BINDING.redirect}" Location="${origin}/sso"/>` +
    `</md:IDPSSODescriptor></md:EntityDescriptor>`
  );
}

function respond(
  { entityId, signer }: Pick<ForgedProvider, 'entityId' | 'signer'>,
  asked: Asked,
  changes: ResponseChanges,
): string {
  const { email = 'mallory@forged.example', signs = 'assertion' } = changes;
  const { beforeSigning = same, afterSigning = same } = changes;
  const signature = { ...signer, ...changes.signature };
  const fields = { ...assertionFields(asked, entityId, email), ...changes.assertion };
  const bare = beforeSigning(assertionXml(fields));
  const isSigned = signs === 'assertion' || signs === 'both';
  const assertion = afterSigning(isSigned ? signed(bare, signature) : bare);
  const response = responseXml(
    { ...responseFields(asked, entityId), ...changes.response },
    assertion,
  );
  return signs === 'response' || signs === 'both' ? signed(response, signature) : response;
}

function same(text: string): string {
  return text;
}
