import { DOMParser, type Element as XmlElement } from '@xmldom/xmldom';
import { DomainError } from '#platform/errors/domain-error.js';
import { assertPlainMarkup, type MarkupLimits } from './markup.js';

/** The XML namespaces of SAML 2.0 and of the standards that it uses. */
export const NS = {
  assertion: 'urn:oasis:names:tc:SAML:2.0:assertion',
  protocol: 'urn:oasis:names:tc:SAML:2.0:protocol',
  metadata: 'urn:oasis:names:tc:SAML:2.0:metadata',
  signature: 'http://www.w3.org/2000/09/xmldsig#',
} as const;

/** The short name of a namespace in {@link NS}. */
export type NamespaceName = keyof typeof NS;

/** An element of an XML document that {@link parseXml} has parsed. */
export type { XmlElement };

/**
 * Parses an XML document strictly: every warning of the parser is an error.
 *
 * @throws DomainError sign_in_failed
 */
export function parseXml(text: string, limits: MarkupLimits): XmlElement {
  assertPlainMarkup(text, limits);
  const parser = new DOMParser({ errorHandler: { warning: fail, error: fail, fatalError: fail } });
  const root = parser.parseFromString(text, 'text/xml').documentElement;
  return root ?? fail();
}

/**
 * Refuses a document that the parser does not accept.
 *
 * @throws DomainError without the parser's message, which quotes the document
 */
function fail(): never {
  throw new DomainError('sign_in_failed', 'The XML of the identity provider is malformed.');
}

/** Returns true if an element has the given name in the given namespace. */
export function isElement(element: XmlElement, namespace: NamespaceName, name: string): boolean {
  return element.namespaceURI === NS[namespace] && element.localName === name;
}

/**
 * Lists the child elements of an element; if a name is given, only those of this name and
 * namespace.
 */
export function childrenOf(
  parent: XmlElement,
  namespace?: NamespaceName,
  name?: string,
): XmlElement[] {
  const elements = Array.from(parent.childNodes).filter(
    (node): node is XmlElement => node.nodeType === parent.ELEMENT_NODE,
  );
  if (namespace === undefined || name === undefined) return elements;
  return elements.filter((element) => isElement(element, namespace, name));
}

/** Lists the element itself and every element below it. */
export function elementsIn(element: XmlElement): XmlElement[] {
  return [element, ...childrenOf(element).flatMap(elementsIn)];
}

/** Reads an attribute without a namespace; undefined if it is absent. */
export function attributeOf(element: XmlElement, name: string): string | undefined {
  return element.hasAttribute(name) ? (element.getAttribute(name) ?? undefined) : undefined;
}

/**
 * Reads the whole text of an element that has no child elements, without white space around it;
 * undefined for any other element.
 */
export function textOf(element: XmlElement): string | undefined {
  return exactTextOf(element)?.trim();
}

/**
 * Reads the whole text of an element that has no child elements, with the white space around it;
 * undefined for any other element.
 */
export function exactTextOf(element: XmlElement): string | undefined {
  return childrenOf(element).length > 0 ? undefined : (element.textContent ?? '');
}

const DURATION =
  /^(?<minus>-?)P(?=.)(?:(?<y>\d{1,9})Y)?(?:(?<mo>\d{1,9})M)?(?:(?<w>\d{1,9})W)?(?:(?<d>\d{1,9})D)?(?:T(?=.)(?:(?<h>\d{1,9})H)?(?:(?<m>\d{1,9})M)?(?:(?<s>\d{1,9}(?:\.\d{1,9})?)S)?)?$/;
/**
 * The milliseconds of each unit of a duration. A year counts as 365 days and a month as 30 days.
 */
const UNITS = {
  y: 31_536_000_000,
  mo: 2_592_000_000,
  w: 604_800_000,
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1000,
};

/**
 * Reads an xs:duration (ISO 8601) as milliseconds, less than 0 for a negative one; undefined for
 * any other text.
 */
export function durationOf(text: string | undefined): number | undefined {
  const groups = DURATION.exec(text ?? '')?.groups;
  if (!groups) return undefined;
  const sum = Object.entries(UNITS).reduce(
    (total, [unit, length]) => total + Number(groups[unit] ?? 0) * length,
    0,
  );
  return groups['minus'] === '-' ? -sum : sum;
}

/**
 * Reads an xs:dateTime in UTC as milliseconds since 1970 (SAML Core §1.3.3); undefined for any
 * other text.
 */
export function instantOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,12})?Z$/.test(text)) return undefined;
  const time = Date.parse(text.replace(/(\.\d{3})\d+/, '$1'));
  return Number.isNaN(time) ? undefined : time;
}
