import { RESERVED_LABELS } from './reserved-labels.js';

/**
 * Matches the label of an issuer: the first part of its host name (RFC 1123 §2.1), with 3 to 63
 * characters. A label with `--` as its third and fourth character is reserved, because A-labels
 * have this form (RFC 5890 §2.3.1).
 */
const LABEL = /^(?!..--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/;

/** The rule for a label in words, for an error text. */
export const LABEL_RULE =
  'must be 3 to 63 characters of a-z, 0-9 and hyphens, without a hyphen at either end, and without -- as the third and fourth character';

/** Returns true for a text that has the form of an issuer label. */
export function isIssuerLabel(text: string): boolean {
  return LABEL.test(text);
}

/**
 * Returns true for a label that no organization can claim, because its host could be mistaken for
 * one of the service.
 */
export function isReservedLabel(label: string): boolean {
  return RESERVED_LABELS.has(label);
}

/**
 * Returns the issuer identifier of a label: the label before the host of the base URL, with the
 * same scheme and port.
 */
export function issuerOfLabel(baseUrl: string, label: string): string {
  const { protocol, host } = new URL(baseUrl);
  return `${protocol}//${label}.${host}`;
}
