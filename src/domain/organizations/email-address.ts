import { z } from 'zod';
import { asciiLowerCase } from '#platform/text/single-line.js';

/** The address every mail form accepts (HTML Living Standard §4.10.5.1.5), within the lengths of RFC 5321 §4.5.3.1. */
const ADDRESS = z
  .string()
  .max(254)
  .regex(z.regexes.html5Email)
  .refine((address) => address.indexOf('@') <= 64);

/**
 * The one spelling under which an e-mail address is stored and compared: trimmed, ASCII lower-cased.
 * Letters beyond ASCII stay as they are.
 */
export function normalizeEmail(text: string): string {
  return asciiLowerCase(text.trim());
}

/** The normalized address; undefined when the text is none, or one that only quoting or non-ASCII could write. */
export function parseEmailAddress(text: string): string | undefined {
  return ADDRESS.safeParse(normalizeEmail(text)).data;
}

/** The domain of an address that {@link parseEmailAddress} returned. */
export function domainOfEmail(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1);
}
