import { X509Certificate, type KeyObject } from 'node:crypto';
import { isHttpsOrLoopback } from '#platform/text/loopback.js';
import { isSingleLine } from '#platform/text/single-line.js';
import {
  NS,
  attributeOf,
  childrenOf,
  durationOf,
  elementsIn,
  instantOf,
  isElement,
  parseXml,
  textOf,
  type XmlElement,
} from '../xml-document.js';

/** The fields of a provider's SAML metadata that a sign-in uses (SAML Metadata §2.4.3). */
export interface IdpMetadata {
  readonly entityId: string;
  /**
   * The URL to which the browser takes the request of this service (the single sign-on service with
   * the HTTP-Redirect binding).
   */
  readonly ssoUrl: string;
  /** The public keys that verify assertions: RSA of 2048 bits or more, or EC. */
  readonly keys: readonly KeyObject[];
  /** True if the provider refuses a request that is not signed. */
  readonly wantsSignedRequests: boolean;
  /**
   * The time at which the metadata expires, in milliseconds since 1970; infinite without a
   * `validUntil`.
   */
  readonly validUntil: number;
  /** The milliseconds after which the metadata is read again, from 5 minutes to a day. */
  readonly cacheFor: number;
}

/**
 * An error in the metadata of a provider. Its message is for the operator and quotes nothing of the
 * document.
 */
export class MetadataFault extends Error {
  override readonly name = 'MetadataFault';
}

const LIMITS = { depth: 32, elements: 50_000, comments: true };
const HTTP_REDIRECT = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect';
const LONGEST_ENTITY_ID = 1024; // in characters (SAML Core §8.3.6)
/**
 * The shortest and the longest time for which metadata is kept, in milliseconds. If a provider
 * states a time outside of these bounds, the nearest bound counts.
 */
const SHORTEST_CACHE = 300_000;
const LONGEST_CACHE = 86_400_000;
const CURVES = new Set(['prime256v1', 'secp384r1', 'secp521r1']);

/**
 * Reads the metadata document of one identity provider.
 *
 * @param url the URL of the document. If it has http, which is allowed for loopback only, the
 *   endpoints may have http, too
 * @param now the present time, in milliseconds since 1970
 * @throws MetadataFault
 */
export function readIdpMetadata(text: string, url: string, now: number): IdpMetadata {
  const root = parse(text);
  const { entity, provider } = onlyProvider(root);
  const described = [root, entity, provider];
  const validUntil = Math.min(...described.map((element) => endOf(element, now)));
  const entityId = attributeOf(entity, 'entityID') ?? '';
  const isFit = entityId !== '' && entityId.length <= LONGEST_ENTITY_ID && isSingleLine(entityId);
  if (!isFit) throw new MetadataFault('has no entityID, or one that is malformed');
  const wanted = attributeOf(provider, 'WantAuthnRequestsSigned');
  return {
    entityId,
    ssoUrl: singleSignOnUrl(provider, url),
    keys: signingKeys(provider),
    wantsSignedRequests: wanted === 'true' || wanted === '1',
    validUntil,
    cacheFor: cacheTime(described, validUntil - now),
  };
}

function parse(text: string): XmlElement {
  try {
    return parseXml(text.replace(/^\uFEFF/, ''), LIMITS);
  } catch (error) {
    const reason = /document type/.test(String(error)) ? ': it has a document type (DTD)' : '';
    throw new MetadataFault(`is not plain, well-formed XML${reason}`);
  }
}

/**
 * Finds the one EntityDescriptor that has the role of an identity provider.
 *
 * @throws MetadataFault if there is none, or more than one
 */
function onlyProvider(root: XmlElement): { entity: XmlElement; provider: XmlElement } {
  const isMetadata = ['EntityDescriptor', 'EntitiesDescriptor'].some((name) =>
    isElement(root, 'metadata', name),
  );
  if (!isMetadata) throw new MetadataFault('is not SAML 2.0 metadata');
  const found = elementsIn(root)
    .filter((element) => isElement(element, 'metadata', 'EntityDescriptor'))
    .flatMap((entity) =>
      childrenOf(entity, 'metadata', 'IDPSSODescriptor').map((provider) => ({ entity, provider })),
    );
  const [only] = found;
  if (!only) throw new MetadataFault('describes no identity provider (IDPSSODescriptor)');
  if (found.length > 1) {
    throw new MetadataFault(
      `describes ${found.length} identity providers; use the URL of one provider's own metadata`,
    );
  }
  const protocols = attributeOf(only.provider, 'protocolSupportEnumeration') ?? '';
  if (!protocols.split(/\s+/).includes(NS.protocol)) {
    throw new MetadataFault('describes a provider that does not speak SAML 2.0');
  }
  return only;
}

/**
 * Reads the time at which an element expires (`validUntil`).
 *
 * @throws MetadataFault if the time is malformed or past
 */
function endOf(element: XmlElement, now: number): number {
  const text = attributeOf(element, 'validUntil');
  if (text === undefined) return Infinity;
  const validUntil = instantOf(text);
  if (validUntil === undefined) throw new MetadataFault('has a malformed validUntil');
  if (validUntil <= now) throw new MetadataFault('is out of date: its validUntil is in the past');
  return validUntil;
}

/**
 * Returns the milliseconds for which the metadata is kept: half of `validFor`, or a shorter
 * cacheDuration. The result is from SHORTEST_CACHE to LONGEST_CACHE, so that a document neither
 * makes the service fetch all the time nor keeps a key for years.
 */
function cacheTime(elements: readonly XmlElement[], validFor: number): number {
  const stated = elements.map((element) => durationOf(attributeOf(element, 'cacheDuration')));
  const shortest = Math.min(validFor / 2, ...stated.map((duration) => duration ?? Infinity));
  return Math.min(LONGEST_CACHE, Math.max(SHORTEST_CACHE, shortest));
}

function singleSignOnUrl(provider: XmlElement, url: string): string {
  const service = childrenOf(provider, 'metadata', 'SingleSignOnService').find(
    (element) => attributeOf(element, 'Binding') === HTTP_REDIRECT,
  );
  if (!service) {
    throw new MetadataFault('has no SingleSignOnService with the HTTP-Redirect binding');
  }
  const location = attributeOf(service, 'Location') ?? '';
  const isSecure =
    location.startsWith('https:') || (url.startsWith('http:') && isHttpsOrLoopback(location));
  const parsed = URL.canParse(location) ? new URL(location) : undefined;
  if (!isSecure || !parsed || parsed.hash || parsed.username || parsed.password) {
    throw new MetadataFault('has a SingleSignOnService whose Location is not a plain https URL');
  }
  return location;
}

/**
 * Collects the keys with which the provider signs. A KeyDescriptor without `use` is for signing,
 * too (SAML Metadata §2.4.1.1).
 */
function signingKeys(provider: XmlElement): KeyObject[] {
  const certificates = childrenOf(provider, 'metadata', 'KeyDescriptor')
    .filter((descriptor) => (attributeOf(descriptor, 'use') ?? 'signing') === 'signing')
    .flatMap((descriptor) => firstCertificate(descriptor) ?? []);
  if (certificates.length === 0) throw new MetadataFault('has no signing certificate');
  const keys = certificates.map(publicKeyOf).filter(isStrong);
  if (keys.length === 0) {
    throw new MetadataFault('has only signing keys that are too weak: RSA needs 2048 bits or more');
  }
  return keys;
}

/**
 * Returns the first certificate of a KeyDescriptor. The certificates after it are its chain, whose
 * keys sign no assertions.
 */
function firstCertificate(descriptor: XmlElement): string | undefined {
  const certificate = childrenOf(descriptor, 'signature', 'KeyInfo')
    .flatMap((info) => childrenOf(info, 'signature', 'X509Data'))
    .flatMap((data) => childrenOf(data, 'signature', 'X509Certificate'))[0];
  return certificate && textOf(certificate)?.replaceAll(/\s/g, '');
}

function publicKeyOf(base64: string): KeyObject {
  try {
    return new X509Certificate(Buffer.from(base64, 'base64')).publicKey;
  } catch {
    throw new MetadataFault('has a signing certificate that cannot be read');
  }
}

function isStrong({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): boolean {
  if (type === 'ec') return CURVES.has(details?.namedCurve ?? '');
  return type === 'rsa' && (details?.modulusLength ?? 0) >= 2048;
}
