import type { KeyObject } from 'node:crypto';

/**
 * Types of the XML libraries, as far as this service uses them. Their own declarations refer to the
 * DOM library of browsers, which would change the types of `fetch` and of Web Crypto in the whole
 * service. The `paths` of tsconfig.json lead to this file instead.
 */

/** A node of an XML document, such as an element or a text. */
export interface Node {
  readonly nodeType: number;
  readonly ELEMENT_NODE: number;
  readonly childNodes: ArrayLike<Node>;
  readonly parentNode: Node | null;
  readonly textContent: string | null;
  readonly ownerDocument: Document | null;
  toString(): string;
}

export interface Attribute extends Node {
  readonly name: string;
  readonly localName: string;
  readonly value: string;
}

export interface Element extends Node {
  readonly tagName: string;
  readonly localName: string;
  readonly namespaceURI: string | null;
  readonly attributes: ArrayLike<Attribute>;
  hasAttribute(name: string): boolean;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  appendChild(node: Node): Node;
  insertBefore(node: Node, before: Node | null): Node;
  removeChild(node: Node): Node;
  cloneNode(deep: boolean): Element;
}

export interface Document extends Node {
  readonly documentElement: Element | null;
  getElementsByTagNameNS(namespace: string, name: string): ArrayLike<Element>;
}

/** The parser of xmldom, which makes a document from an XML text. */
export class DOMParser {
  constructor(options?: {
    readonly errorHandler?: Readonly<
      Record<'warning' | 'error' | 'fatalError', (message: string) => void>
    >;
  });
  parseFromString(text: string, type?: string): Document;
}

/** The writer of xmldom, which makes an XML text from a node. */
export class XMLSerializer {
  serializeToString(node: Node): string;
}

type Table<Algorithm> = Record<string, new () => Algorithm>;

export interface SignatureAlgorithm {
  getAlgorithmName(): string;
  getSignature(signed: string, key: KeyObject | string): string;
  verifySignature(signed: string, key: KeyObject | string, value: string): boolean;
}

export interface HashAlgorithm {
  getAlgorithmName(): string;
  getHash(xml: string): string;
}

/** Verifies and makes XML signatures (XML Signature 1.1). */
export class SignedXml {
  constructor(options?: {
    readonly publicCert?: KeyObject | string;
    readonly privateKey?: KeyObject | string;
    readonly idAttribute?: string;
    readonly signatureAlgorithm?: string;
    readonly canonicalizationAlgorithm?: string;
    readonly getCertFromKeyInfo?: () => null;
    readonly getKeyInfoContent?: (options?: unknown) => string | null;
  });
  /** The names of the attributes by which a reference finds its element. */
  idAttributes: string[];
  SignatureAlgorithms: Table<SignatureAlgorithm>;
  HashAlgorithms: Table<HashAlgorithm>;
  CanonicalizationAlgorithms: Table<unknown>;
  loadSignature(signature: Element | string): void;
  /**
   * Returns true if the signature of the document is right.
   *
   * @throws Error for a wrong value
   */
  checkSignature(document: string): boolean;
  /** Returns the canonical text of the elements that the signature covers. */
  getSignedReferences(): string[];
  addReference(options: {
    readonly xpath: string;
    readonly transforms: readonly string[];
    readonly digestAlgorithm: string;
    readonly inclusiveNamespacesPrefixList?: readonly string[];
  }): void;
  computeSignature(
    document: string,
    options?: {
      readonly prefix?: string;
      readonly location?: { readonly reference: string; readonly action: string };
    },
  ): void;
  getSignedXml(): string;
  getSignatureXml(): string;
}

/** The settings of node-saml that this service uses. */
export interface SamlSettings {
  readonly callbackUrl: string;
  readonly issuer: string;
  readonly entryPoint: string;
  readonly idpCert: string;
  /** Null, so that the request names no format of the NameID. */
  readonly identifierFormat: null;
  readonly disableRequestedAuthnContext: true;
  readonly wantAssertionsSigned: true;
  readonly wantAuthnResponseSigned: false;
  readonly generateUniqueId: () => string;
  /**
   * The private key that signs the request, as PKCS#8 in PEM; without it the request is not signed.
   */
  readonly privateKey?: string;
  readonly signatureAlgorithm: 'sha256';
}

/** A SAML service provider in node-saml, which writes requests. */
export class SAML {
  constructor(settings: SamlSettings);
  /** Returns the URL at the provider with the request (HTTP-Redirect binding). */
  getAuthorizeUrlAsync(relayState: string, host: undefined, options: object): Promise<string>;
}
