import { z } from 'zod';
import { asciiLowerCase } from '#platform/text/single-line.js';

/**
 * The e-mail addresses that HTML forms accept (HTML Living Standard §4.10.5.1.5), within the
 * lengths of RFC 5321 §4.5.3.1.
 */
const ADDRESS = z
  .string()
  .max(254)
  .regex(z.regexes.html5Email)
  .refine((address) => address.indexOf('@') <= 64);

/**
 * Normalizes an e-mail address for storage and comparison: without blanks around it, and with ASCII
 * letters in lower case. Other letters do not change.
 */
export function normalizeEmail(text: string): string {
  return asciiLowerCase(text.trim());
}

/**
 * Returns the normalized e-mail address; undefined for a text that is no e-mail address, and for
 * quoted or non-ASCII addresses.
 */
export function parseEmailAddress(text: string): string | undefined {
  return ADDRESS.safeParse(normalizeEmail(text)).data;
}

/** Returns the domain of an e-mail address from {@link parseEmailAddress}. */
export function domainOfEmail(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1);
}
