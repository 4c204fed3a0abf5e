import { createHash, verify, type KeyObject } from 'node:crypto';
import { SignedXml, type HashAlgorithm, type SignatureAlgorithm } from 'xml-crypto';
import { DomainError } from '#platform/errors/domain-error.js';
import { attributeOf, childrenOf, isElement, textOf, type XmlElement } from './xml-document.js';

/**
 * Only this file imports xml-crypto, the signature library of node-saml. The library computes the
 * canonical form and the digest, and returns the bytes that the signature covers. This file gives
 * the library one signature with a checked structure, a table of the allowed algorithms, and the
 * keys of the provider's metadata. A key in the message is never used.
 */
const ENVELOPED = 'http://www.w3.org/2000/09/xmldsig#enveloped-signature';
const EXCLUSIVE_C14N = 'http://www.w3.org/2001/10/xml-exc-c14n#';

/**
 * The allowed signature algorithms (RFC 9231 §2.3), each as a digest and the type of the key. SHA-1
 * and HMAC are left out: SHA-1 is broken, and HMAC needs a shared secret.
 */
const SIGNATURES: Readonly<Record<string, { readonly hash: string; readonly type: 'rsa' | 'ec' }>> =
  {
    'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256': { hash: 'sha256', type: 'rsa' },
    'http://www.w3.org/2001/04/xmldsig-more#rsa-sha384': { hash: 'sha384', type: 'rsa' },
    'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512': { hash: 'sha512', type: 'rsa' },
    'http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256': { hash: 'sha256', type: 'ec' },
    'http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha384': { hash: 'sha384', type: 'ec' },
    'http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha512': { hash: 'sha512', type: 'ec' },
  };

const DIGESTS: Readonly<Record<string, string>> = {
  'http://www.w3.org/2001/04/xmlenc#sha256': 'sha256',
  'http://www.w3.org/2001/04/xmldsig-more#sha384': 'sha384',
  'http://www.w3.org/2001/04/xmlenc#sha512': 'sha512',
};

/**
 * Verifies the one enveloped signature of an element, and returns the canonical bytes that it
 * covers. The caller reads those bytes and never the element, so that only signed content is used.
 *
 * @param document the text that the element was parsed from
 * @param keys the signing keys of the metadata
 * @throws UnknownSigningKey if the element was not changed, but no key of the metadata signed it
 * @throws DomainError sign_in_failed if the signature is absent or of another structure, or if the
 *   element was changed after it was signed
 */
export function verifiedBytes(
  document: string,
  element: XmlElement,
  keys: readonly KeyObject[],
): string {
  const [signature, ...others] = childrenOf(element, 'signature', 'Signature');
  if (!signature) throw unverified('is not signed');
  if (others.length > 0) throw unverified('is signed twice');
  checkShape(signature, attributeOf(element, 'ID'));
  return verifyByAny(keys, signature, document);
}

/** Returns true for an element with a signature as its child. */
export function isSigned(element: XmlElement): boolean {
  return childrenOf(element, 'signature', 'Signature').length > 0;
}

/**
 * Checks the structure of a signature and every algorithm that it names, before any of them is
 * used.
 * @throws DomainError sign_in_failed
 */
function checkShape(signature: XmlElement, id: string | undefined): void {
  const [signedInfo, value, keyInfo, ...more] = childrenOf(signature);
  const isWhole =
    signedInfo !== undefined &&
    isElement(signedInfo, 'signature', 'SignedInfo') &&
    value !== undefined &&
    isElement(value, 'signature', 'SignatureValue') &&
    textOf(value) !== undefined &&
    (keyInfo === undefined || isElement(keyInfo, 'signature', 'KeyInfo')) &&
    more.length === 0;
  if (!isWhole) throw unverified('has a signature of an unusual shape');
  const [c14n, method, reference, ...others] = childrenOf(signedInfo);
  if (!c14n || !method || !reference || others.length > 0) {
    throw unverified('has a signature with other than one reference');
  }
  if (algorithmOf(c14n, 'CanonicalizationMethod') !== EXCLUSIVE_C14N) {
    throw unverified('has a signature with another canonicalization than exclusive');
  }
  if (!Object.hasOwn(SIGNATURES, algorithmOf(method, 'SignatureMethod') ?? '')) {
    throw unverified('is signed by an algorithm that is not accepted, such as SHA-1');
  }
  checkReference(reference, id);
}

/**
 * Checks that the reference in a signature is to the signed element, and that it names the expected
 * algorithms.
 *
 * @throws DomainError sign_in_failed
 */
function checkReference(reference: XmlElement, id: string | undefined): void {
  const [transforms, method, value, ...others] = childrenOf(reference);
  const isWhole =
    isElement(reference, 'signature', 'Reference') &&
    transforms !== undefined &&
    isElement(transforms, 'signature', 'Transforms') &&
    value !== undefined &&
    isElement(value, 'signature', 'DigestValue') &&
    textOf(value) !== undefined &&
    others.length === 0;
  if (!isWhole || !method) throw unverified('has a signature of an unusual shape');
  const names = childrenOf(transforms).map((one) => algorithmOf(one, 'Transform'));
  if (names.length !== 2 || names[0] !== ENVELOPED || names[1] !== EXCLUSIVE_C14N) {
    throw unverified('has a signature with other transforms');
  }
  if (!Object.hasOwn(DIGESTS, algorithmOf(method, 'DigestMethod') ?? '')) {
    throw unverified('is signed with a digest that is not accepted, such as SHA-1');
  }
  if (id === undefined || !/^[A-Za-z_][\w.-]{0,255}$/.test(id)) {
    throw unverified('has no ID, or a malformed one');
  }
  if (attributeOf(reference, 'URI') !== `#${id}`) {
    throw unverified('has a signature of another element');
  }
}

function algorithmOf(element: XmlElement, name: string): string | undefined {
  return isElement(element, 'signature', name) ? attributeOf(element, 'Algorithm') : undefined;
}

/**
 * Verifies a signature by any of the keys. The canonical form of the message, which is costly, is
 * computed once for all keys. The library compares the digest first, and verifies the signature
 * only if the element is unchanged.
 *
 * @throws UnknownSigningKey, or DomainError sign_in_failed for an element that was changed
 */
function verifyByAny(keys: readonly KeyObject[], signature: XmlElement, document: string): string {
  // The library requires a key here, but the table of algorithms below tries all keys.
  const [publicCert] = keys;
  if (publicCert === undefined) throw new Error('metadata without a key was accepted');
  let isIntact = false;
  const library = new SignedXml({ publicCert, getCertFromKeyInfo: () => null });
  // The library searches the whole message for each listed attribute name, so only the name that
  // SAML uses is listed.
  library.idAttributes = ['ID'];
  library.SignatureAlgorithms = signatureTable(keys, () => {
    isIntact = true;
  });
  library.HashAlgorithms = digestTable();
  const { [ENVELOPED]: enveloped, [EXCLUSIVE_C14N]: exclusive } =
    library.CanonicalizationAlgorithms;
  if (!enveloped || !exclusive) throw new Error('xml-crypto knows its transforms no more');
  library.CanonicalizationAlgorithms = { [ENVELOPED]: enveloped, [EXCLUSIVE_C14N]: exclusive };
  try {
    library.loadSignature(signature);
    if (library.checkSignature(document)) {
      const [bytes, ...more] = library.getSignedReferences();
      if (bytes !== undefined && more.length === 0) return bytes;
      isIntact = false;
    }
  } catch {
    // The signature is wrong. The library's error is not kept as a cause, because it quotes the
    // message.
  }
  throw isIntact ? new UnknownSigningKey() : unverified('was changed after it was signed');
}

/**
 * Returns the table of signature algorithms in the form of xml-crypto. The library accepts only one
 * key, so each algorithm in the table tries all keys of the metadata.
 *
 * @param reached called before the keys are tried. The library tries them only if the digest is
 *   right, so a call shows that the element is unchanged
 */
function signatureTable(
  keys: readonly KeyObject[],
  reached: () => void,
): Record<string, new () => SignatureAlgorithm> {
  const entries = Object.entries(SIGNATURES).map(([name, { hash, type }]) => {
    class Verifier implements SignatureAlgorithm {
      getAlgorithmName = () => name;
      getSignature = (): never => {
        throw new Error('this service verifies assertions and signs none');
      };
      verifySignature = (signed: string, _: KeyObject | string, value: string): boolean => {
        reached();
        const [bytes, signature] = [Buffer.from(signed), Buffer.from(value, 'base64')];
        // An ECDSA signature in XML is the two numbers r and s without ASN.1 (XML Signature 1.1
        // §6.4.3).
        const isBy = (key: KeyObject) =>
          key.asymmetricKeyType === type &&
          verify(hash, bytes, { key, dsaEncoding: 'ieee-p1363' }, signature);
        return keys.some(isBy);
      };
    }
    return [name, Verifier] as const;
  });
  return Object.fromEntries(entries);
}

/** Returns the table of digests in the form of xml-crypto. */
function digestTable(): Record<string, new () => HashAlgorithm> {
  const entries = Object.entries(DIGESTS).map(([name, hash]) => {
    class Digest implements HashAlgorithm {
      getAlgorithmName = () => name;
      getHash = (xml: string) => createHash(hash).update(xml).digest('base64');
    }
    return [name, Digest] as const;
  });
  return Object.fromEntries(entries);
}

/**
 * The error for a signature that no key of the metadata made. The caller then reads the metadata
 * again, because the provider may have replaced its key.
 */
export class UnknownSigningKey extends DomainError {
  constructor() {
    super(
      'sign_in_failed',
      textOfFault('has a signature of no key in the metadata of the provider'),
    );
  }
}

function unverified(fault: string): DomainError {
  return new DomainError('sign_in_failed', textOfFault(fault));
}

function textOfFault(fault: string): string {
  return `The assertion of the identity provider ${fault}. Its administrator must check the signing of assertions.`;
}
