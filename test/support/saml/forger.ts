import { createHash, createHmac, createSign, randomUUID } from 'node:crypto';
import { ALG, NAME_ID, NS } from './saml-names.js';

/**
 * Makes SAML responses as texts in canonical form (Exclusive XML Canonicalization). So the digest
 * of an element is simply the digest of its text. No XML library takes part, because a test must
 * control every byte.
 */

/** The values of a SAML request that its response needs. */
export interface Asked {
  readonly requestId: string;
  readonly acsUrl: string;
  /** The entity id of the service provider, which is the audience of the assertion. */
  readonly audience: string;
  readonly relayState: string;
}

/** The values in an assertion. Texts are already XML, so that a test can put elements into them. */
export interface AssertionFields {
  readonly id: string;
  readonly issuer: string;
  readonly nameId: string;
  readonly nameIdFormat: string;
  readonly inResponseTo: string | undefined;
  readonly recipient: string;
  readonly audience: string;
  readonly issueInstant: Date;
  readonly notBefore: Date;
  readonly notOnOrAfter: Date;
  /** The attributes in their order. Each has a name and any number of values. */
  readonly attributes: readonly (readonly [name: string, ...values: string[]])[];
  /** Further XML at the end of the assertion. */
  readonly extra: string;
}

/** The content of a response other than its assertions. */
export interface ResponseFields {
  readonly id: string;
  readonly issuer: string;
  readonly destination: string | undefined;
  readonly inResponseTo: string | undefined;
  readonly issueInstant: Date;
  readonly status: string;
}

/** The options of the XML signature of an element. By default it is correct. */
export interface SignatureOptions {
  /** The private key as PEM; for HMAC the secret. */
  readonly key: string;
  /**
   * The certificate in the element KeyInfo, as DER in base64. If it is undefined, the signature has
   * no KeyInfo.
   */
  readonly certificate?: string | undefined;
  readonly method?: string;
  readonly digestMethod?: string;
  readonly canonicalization?: string;
  readonly transforms?: readonly string[];
  /**
   * The URI by which the signature names the signed element; by default `#` and the ID of the
   * element.
   */
  readonly uri?: string;
  /** Returns a changed text of SignedInfo, which is then signed. */
  readonly signedInfo?: (signedInfo: string) => string;
  /** Returns a changed text of the finished signature element. */
  readonly signature?: (signature: string) => string;
  /**
   * A text that is digested in place of the element, so that the digest does not match the element.
   */
  readonly digested?: string;
}

const MINUTE = 60_000;

/** Returns the fields of a correct assertion about a user. */
export function assertionFields(
  asked: Asked,
  issuer: string,
  email: string,
  now = new Date(),
): AssertionFields {
  return {
    id: `_${randomUUID()}`,
    issuer,
    nameId: email,
    nameIdFormat: NAME_ID.email,
    inResponseTo: asked.requestId,
    recipient: asked.acsUrl,
    audience: asked.audience,
    issueInstant: now,
    notBefore: new Date(now.getTime() - MINUTE / 2),
    notOnOrAfter: new Date(now.getTime() + 5 * MINUTE),
    attributes: [['mail', email]],
    extra: '',
  };
}

/** Returns the fields of a correct response. */
export function responseFields(asked: Asked, issuer: string, now = new Date()): ResponseFields {
  return {
    id: `_${randomUUID()}`,
    issuer,
    destination: asked.acsUrl,
    inResponseTo: asked.requestId,
    issueInstant: now,
    status: 'urn:oasis:names:tc:SAML:2.0:status:Success',
  };
}

/** Returns an assertion without a signature as XML. */
export function assertionXml(fields: AssertionFields): string {
  const { inResponseTo, recipient } = fields;
  const expiry = fields.notOnOrAfter.toISOString();
  const answer = inResponseTo === undefined ? '' : ` InResponseTo="${inResponseTo}"`;
  return (
    `<saml:Assertion xmlns:saml="${NS.assertion}" ID="${fields.id}" ` +
    `IssueInstant="${fields.issueInstant.toISOString()}" Version="2.0">` +
    `<saml:Issuer>${fields.issuer}</saml:Issuer>` +
    `<saml:Subject><saml:NameID Format="${fields.nameIdFormat}">${fields.nameId}</saml:NameID>` +
    `<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">` +
    `<saml:SubjectConfirmationData${answer} NotOnOrAfter="${expiry}" Recipient="${recipient}">` +
    `</saml:SubjectConfirmationData></saml:SubjectConfirmation></saml:Subject>` +
    `<saml:Conditions NotBefore="${fields.notBefore.toISOString()}" NotOnOrAfter="${expiry}">` +
    `<saml:AudienceRestriction><saml:Audience>${fields.audience}</saml:Audience>` +
    `</saml:AudienceRestriction></saml:Conditions>` +
    `<saml:AuthnStatement AuthnInstant="${fields.issueInstant.toISOString()}">` +
    `<saml:AuthnContext><saml:AuthnContextClassRef>` +
    `urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport` +
    `</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>` +
    attributeStatement(fields.attributes) +
    `${fields.extra}</saml:Assertion>`
  );
}

/**
 * Returns the AttributeStatement element of an assertion as XML; an empty text if there are no
 * attributes.
 */
export function attributeStatement(attributes: AssertionFields['attributes']): string {
  if (attributes.length === 0) return '';
  const written = attributes.map(([name, ...values]) => {
    const inner = values.map((value) => `<saml:AttributeValue>${value}</saml:AttributeValue>`);
    return `<saml:Attribute Name="${name}">${inner.join('')}</saml:Attribute>`;
  });
  return `<saml:AttributeStatement>${written.join('')}</saml:AttributeStatement>`;
}

/** Returns a response without a signature as XML. `content` has its status and its assertions. */
export function responseXml(fields: ResponseFields, content: string): string {
  const { destination, inResponseTo } = fields;
  const to = destination === undefined ? '' : ` Destination="${destination}"`;
  const answer = inResponseTo === undefined ? '' : ` InResponseTo="${inResponseTo}"`;
  return (
    `<samlp:Response xmlns:samlp="${NS.protocol}"${to} ID="${fields.id}"${answer} ` +
    `IssueInstant="${fields.issueInstant.toISOString()}" Version="2.0">` +
    `<saml:Issuer xmlns:saml="${NS.assertion}">${fields.issuer}</saml:Issuer>` +
    `<samlp:Status><samlp:StatusCode Value="${fields.status}"></samlp:StatusCode></samlp:Status>` +
    `${content}</samlp:Response>`
  );
}

/** Signs an element in canonical form, and puts the signature after its Issuer. */
export function signed(element: string, options: SignatureOptions): string {
  return afterIssuer(element, signatureOf(element, options));
}

/** Puts XML after the first Issuer of an element. */
export function afterIssuer(element: string, xml: string): string {
  const end = element.indexOf('</saml:Issuer>') + '</saml:Issuer>'.length;
  return element.slice(0, end) + xml + element.slice(end);
}

/** Returns the value of the attribute ID of an element, or an empty text. */
export function idOf(element: string): string {
  return / ID="([^"]*)"/.exec(element)?.[1] ?? '';
}

/** Returns the signature element for an element that is not signed yet. */
export function signatureOf(element: string, options: SignatureOptions): string {
  const { signedInfo: change = same, signature: changeSignature = same } = options;
  const signedInfo = change(signedInfoOf(element, options));
  const value = signatureValue(signedInfo, options);
  const keyInfo =
    options.certificate === undefined
      ? ''
      : '<ds:KeyInfo><ds:X509Data><ds:X509Certificate>' +
        `${options.certificate}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>`;
  const inPlace = signedInfo.replace(` xmlns:ds="${NS.signature}"`, '');
  return changeSignature(
    `<ds:Signature xmlns:ds="${NS.signature}">${inPlace}` +
      `<ds:SignatureValue>${value}</ds:SignatureValue>${keyInfo}</ds:Signature>`,
  );
}

/** Signs a SignedInfo element in canonical form. Returns base64. */
export function signatureValue(
  signedInfo: string,
  { key, method = ALG.rsaSha256 }: SignatureOptions,
): string {
  if (method === ALG.hmacSha1) return createHmac('sha1', key).update(signedInfo).digest('base64');
  const hash = method === ALG.rsaSha1 ? 'RSA-SHA1' : 'RSA-SHA256';
  return createSign(hash).update(signedInfo).sign(key, 'base64');
}

/** Returns the base64 digest of a text. */
export function digestOf(text: string, method: string = ALG.sha256): string {
  const hash = method === ALG.sha1 ? 'sha1' : 'sha256';
  return createHash(hash).update(text).digest('base64');
}

function signedInfoOf(element: string, options: SignatureOptions): string {
  const {
    method = ALG.rsaSha256,
    digestMethod = ALG.sha256,
    canonicalization = ALG.exclusive,
    transforms = [ALG.enveloped, ALG.exclusive],
    uri = `#${idOf(element)}`,
    digested = element,
  } = options;
  const listed = transforms.map((transform) =>
    transform.startsWith('<')
      ? transform
      : `<ds:Transform Algorithm="${transform}"></ds:Transform>`,
  );
  return (
    `<ds:SignedInfo xmlns:ds="${NS.signature}">` +
    `<ds:CanonicalizationMethod Algorithm="${canonicalization}"></ds:CanonicalizationMethod>` +
    `<ds:SignatureMethod Algorithm="${method}"></ds:SignatureMethod>` +
    `<ds:Reference URI="${uri}"><ds:Transforms>${listed.join('')}</ds:Transforms>` +
    `<ds:DigestMethod Algorithm="${digestMethod}"></ds:DigestMethod>` +
    `<ds:DigestValue>${digestOf(digested, digestMethod)}</ds:DigestValue></ds:Reference></ds:SignedInfo>`
  );
}

function same(text: string): string {
  return text;
}
