import {
  generateKeyPairSync,
  randomUUID,
  sign,
  X509Certificate,
  type KeyObject,
} from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { inflateRawSync } from 'node:zlib';
import { SignedXml, type SignatureAlgorithm } from 'xml-crypto';
import { issueCertificate } from '@svc/stand-ins/certificates';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import type { Client } from './client.js';

const SHA256 = 'http://www.w3.org/2001/04/xmlenc#sha256';
const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#';
const ENVELOPED = 'http://www.w3.org/2000/09/xmldsig#enveloped-signature';
export const PERSISTENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent';
export const EMAIL_ADDRESS = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';

/** The values in a SAML response. A test replaces some of them. */
export interface ResponseFacts {
  readonly requestId: string;
  readonly acsUrl: string;
  readonly audience: string;
  readonly issuer: string;
  readonly nameId: string;
  readonly format: string;
  readonly attributes: Readonly<Record<string, readonly string[]>>;
  readonly assertionId: string;
  /** The time of the response in milliseconds since 1970. */
  readonly now: number;
  /**
   * XML that is added unchanged to the elements Conditions, SubjectConfirmationData, AuthnStatement
   * and NameID.
   */
  readonly conditions: string;
  readonly confirmation: string;
  readonly statement: string;
  readonly qualifiers: string;
}

/** A SAML request of the service that was decoded by the test's provider. */
export interface SamlRequest {
  readonly id: string;
  readonly xml: string;
  readonly parameters: URLSearchParams;
}

/** A SAML provider in which a test controls the metadata and the responses. */
export interface TestSamlIdp {
  readonly entityId: string;
  readonly metadataUrl: string;
  /**
   * Returns changed metadata to serve. If it is undefined, the provider serves correct metadata.
   */
  metadata: ((xml: string) => string) | undefined;
  /** The HTTP status of the answer with the metadata; 200 until a test changes it. */
  status: number;
  /** The number of times that the metadata was fetched. */
  fetches: number;
  /** The metadata response waits for this promise; undefined if it does not wait. */
  hold: Promise<void> | undefined;
  readonly key: KeyObject;
  /** Makes a new signing key. The metadata then have only this key. */
  rotateKey(): void;
  /**
   * Begins a sign-in at the service in a browser. Returns the encoded response that the browser
   * would post to the service.
   */
  answer(client: Client, changes?: Partial<ResponseFacts>): Promise<string>;
  /**
   * Begins a sign-in at the service with a browser, and reads the SAML request in the redirect to
   * the provider.
   */
  request(client: Client, path?: string): Promise<SamlRequest>;
  /**
   * Makes the provider sign by another algorithm (RFC 9231 §2.3), with a new key of the type that
   * it needs.
   */
  useAlgorithm(name: SignatureName): void;
  /** Returns a response with a signed assertion, in base64. */
  respond(facts: Partial<ResponseFacts> & Pick<ResponseFacts, 'requestId'>): string;
  close(): Promise<void>;
}

/**
 * Starts a SAML provider for one service. `slug` is the name of the provider in the service's
 * settings.
 */
export async function startSamlIdp(options: {
  readonly baseUrl: () => string;
  readonly slug: string;
  readonly wantsSignedRequests?: boolean;
}): Promise<TestSamlIdp> {
  let current = newKey();
  let algorithm: SignatureName = 'rsa-sha256';
  const serve = async (response: ServerResponse) => {
    idp.fetches += 1;
    await idp.hold;
    response.writeHead(idp.status, { 'content-type': 'application/xml', location: '/elsewhere' });
    response.end(idp.metadata ? idp.metadata(metadataOf()) : metadataOf());
  };
  const server = createServer((_, response) => void serve(response));
  const port = await listenOnLoopback(server);
  const origin = `http://127.0.0.1:${port}`;
  const metadataOf = () =>
    metadataXml({
      entityId: idp.entityId,
      ssoUrl: `${origin}/sso?tenant=7`,
      certificate: current.certificate,
      wantsSignedRequests: options.wantsSignedRequests ?? false,
    });
  const idp: TestSamlIdp = {
    entityId: `${origin}/idp`,
    metadataUrl: `${origin}/metadata`,
    metadata: undefined,
    status: 200,
    fetches: 0,
    hold: undefined,
    get key() {
      return current.privateKey;
    },
    rotateKey() {
      current = newKey();
    },
    useAlgorithm(name) {
      algorithm = name;
      current = newKey(name.startsWith('ecdsa') ? 'P-256' : 2048);
    },
    async request(client, path = '/') {
      const query = new URLSearchParams({ provider: options.slug, redirect_to: path });
      const answer = await client.get(`/login?${query.toString()}`);
      return readRequest(new URL(answer.headers.get('location') ?? ''));
    },
    async answer(client, changes = {}) {
      const { id } = await idp.request(client);
      return idp.respond({ requestId: id, ...changes });
    },
    respond(facts) {
      const whole: ResponseFacts = {
        acsUrl: `${options.baseUrl()}/saml/acs`,
        audience: `${options.baseUrl()}/saml/metadata`,
        issuer: idp.entityId,
        nameId: 'ada@engine.test',
        format: EMAIL_ADDRESS,
        attributes: {},
        assertionId: `_${randomUUID()}`,
        now: Date.now(),
        conditions: '',
        confirmation: '',
        statement: '',
        qualifiers: '',
        ...facts,
      };
      return Buffer.from(signed(responseXml(whole), current.privateKey, { algorithm })).toString(
        'base64',
      );
    },
    close: () => stopServer(server),
  };
  return idp;
}

/** Decodes the SAML request in the URL of a redirect to the provider. */
export function readRequest(url: URL): SamlRequest {
  const deflated = Buffer.from(url.searchParams.get('SAMLRequest') ?? '', 'base64');
  const xml = inflateRawSync(deflated).toString();
  return { id: / ID="([^"]+)"/.exec(xml)?.[1] ?? '', xml, parameters: url.searchParams };
}

/**
 * Posts a SAML response to the service as a browser does. The form is on the provider's site, so
 * the browser sends no cookies of the service.
 */
export function postResponse(client: Client, response: string, path = '/saml/acs') {
  return client.post(path, new URLSearchParams({ SAMLResponse: response }).toString(), {
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: 'https://idp.example',
      cookie: '',
    },
  });
}

/** The algorithms with which a test provider signs. */
export type SignatureName =
  'rsa-sha256' | 'rsa-sha384' | 'rsa-sha512' | 'ecdsa-sha256' | 'ecdsa-sha384' | 'ecdsa-sha512';

/**
 * Signs the assertion in a response, or another element that `xpath` selects. Returns the whole
 * XML.
 */
export function signed(
  xml: string,
  key: KeyObject,
  {
    xpath = "//*[local-name(.)='Assertion']",
    algorithm = 'rsa-sha256',
  }: { readonly xpath?: string; readonly algorithm?: SignatureName } = {},
): string {
  const name = `http://www.w3.org/2001/04/xmldsig-more#${algorithm}`;
  const signature = new SignedXml({
    privateKey: key,
    signatureAlgorithm: name,
    canonicalizationAlgorithm: EXCLUSIVE,
  });
  signature.SignatureAlgorithms = { [name]: signerOf(name, algorithm.split('-')[1] ?? '') };
  signature.addReference({
    xpath,
    transforms: [ENVELOPED, EXCLUSIVE],
    digestAlgorithm: SHA256,
  });
  const issuer = `${xpath}/*[local-name(.)='Issuer']`;
  signature.computeSignature(xml, {
    prefix: 'ds',
    location: { reference: issuer, action: 'after' },
  });
  return signature.getSignedXml();
}

function signerOf(name: string, hash: string): new () => SignatureAlgorithm {
  return class implements SignatureAlgorithm {
    getAlgorithmName = () => name;
    verifySignature = () => false;
    getSignature = (text: string, key: KeyObject | string) => {
      if (typeof key === 'string') throw new Error('a key object is expected');
      const options = { key, dsaEncoding: 'ieee-p1363' } as const;
      return sign(hash, Buffer.from(text), options).toString('base64');
    };
  };
}

/** Returns a SAML response without a signature. */
export function responseXml(facts: ResponseFacts): string {
  const at = (offset: number) => new Date(facts.now + offset).toISOString();
  const attributes = Object.entries(facts.attributes).map(
    ([name, values]) =>
      `<saml:Attribute Name="${name}">${values
        .map((value) => `<saml:AttributeValue>${value}</saml:AttributeValue>`)
        .join('')}</saml:Attribute>`,
  );
  const statement =
    attributes.length > 0
      ? `<saml:AttributeStatement>${attributes.join('')}</saml:AttributeStatement>`
      : '';
  return (
    `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_${randomUUID()}" Version="2.0" IssueInstant="${at(0)}" Destination="${facts.acsUrl}" InResponseTo="${facts.requestId}">` +
    `<saml:Issuer>${facts.issuer}</saml:Issuer>` +
    '<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>' +
    `<saml:Assertion ID="${facts.assertionId}" Version="2.0" IssueInstant="${at(0)}">` +
    `<saml:Issuer>${facts.issuer}</saml:Issuer>` +
    `<saml:Subject><saml:NameID Format="${facts.format}" ${facts.qualifiers}>${facts.nameId}</saml:NameID>` +
    '<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">' +
    `<saml:SubjectConfirmationData Recipient="${facts.acsUrl}" InResponseTo="${facts.requestId}" ${facts.confirmation || `NotOnOrAfter="${at(60_000)}"`}/>` +
    '</saml:SubjectConfirmation></saml:Subject>' +
    `<saml:Conditions ${facts.conditions || `NotBefore="${at(-1000)}" NotOnOrAfter="${at(60_000)}"`}>` +
    `<saml:AudienceRestriction><saml:Audience>${facts.audience}</saml:Audience></saml:AudienceRestriction></saml:Conditions>` +
    `<saml:AuthnStatement AuthnInstant="${at(0)}" ${facts.statement}><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>` +
    `${statement}</saml:Assertion></samlp:Response>`
  );
}

/** Returns the SAML metadata of an identity provider. */
export function metadataXml(facts: {
  readonly entityId: string;
  readonly ssoUrl: string;
  readonly certificate: string;
  readonly wantsSignedRequests: boolean;
}): string {
  return (
    `<?xml version="1.0"?>\n<!-- made by hand -->\n<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" entityID="${facts.entityId}">` +
    `<md:IDPSSODescriptor WantAuthnRequestsSigned="${facts.wantsSignedRequests}" protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">` +
    `<md:KeyDescriptor use="signing"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>${facts.certificate}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>` +
    `<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="${facts.ssoUrl.replaceAll('&', '&amp;')}"/>` +
    '</md:IDPSSODescriptor></md:EntityDescriptor>\n'
  );
}

/**
 * Makes a key, and a self-signed certificate for it as DER in base64. `kind` is the number of RSA
 * bits, or P-256.
 */
export function newKey(kind: number | 'P-256' = 2048): {
  readonly privateKey: KeyObject;
  readonly certificate: string;
} {
  const keys =
    kind === 'P-256'
      ? generateKeyPairSync('ec', { namedCurve: kind })
      : generateKeyPairSync('rsa', { modulusLength: kind });
  const { der } = issueCertificate({
    subject: [['CN', 'a test provider']],
    notBefore: new Date(Date.now() - 86_400_000),
    notAfter: new Date(Date.now() + 86_400_000),
    extensions: [],
    keys,
  });
  return {
    privateKey: keys.privateKey,
    certificate: new X509Certificate(der).raw.toString('base64'),
  };
}
