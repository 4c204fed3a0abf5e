import { toSingleLine } from '#platform/text/single-line.js';

/**
 * The first label of the name of the TXT record that proves a domain. The rest of the name is the
 * domain.
 */
export const RECORD_LABEL = '_svc-verification';

/** The DNS record that proves a domain, with its full name and its expected text. */
export interface ProofRecord {
  readonly name: string;
  readonly type: 'TXT';
  readonly value: string;
}

/** Returns the TXT record that an organization must publish to prove a domain. */
export function proofRecord(domain: string, token: string): ProofRecord {
  return { name: `${RECORD_LABEL}.${domain}`, type: 'TXT', value: `svc-verification=${token}` };
}

/** Returns true if one of the TXT records found is exactly the one that proves the domain. */
export function isProof({ value }: ProofRecord, texts: readonly string[]): boolean {
  return texts.includes(value);
}

/** The most TXT records that an error text shows, and the most characters of each. */
const SHOWN = { texts: 3, characters: 80 } as const;

/**
 * Describes the TXT records that the DNS has instead of the right one, so that the admin finds the
 * mistake.
 */
export function describeMismatch({ name }: ProofRecord, texts: readonly string[]): string {
  const then = 'Publish the record, wait until the DNS shows it, and verify again.';
  if (texts.length === 0) return `${name} has no TXT record. ${then}`;
  const shown = texts
    .slice(0, SHOWN.texts)
    .map((text) => JSON.stringify(toSingleLine(text, SHOWN.characters) ?? ''));
  const more = texts.length > SHOWN.texts ? ` and ${texts.length - SHOWN.texts} more` : '';
  return `${name} has no TXT record with the expected value, but ${shown.join(', ')}${more}. ${then}`;
}
