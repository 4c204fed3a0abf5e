import { toSingleLine } from '#platform/text/single-line.js';

/** The label of the record below the domain. */
export const RECORD_LABEL = '_svc-verification';

/** The TXT record that proves a domain. */
export interface ProofRecord {
  readonly name: string;
  readonly type: 'TXT';
  readonly value: string;
}

/** Returns the record that an organization publishes to prove a domain. */
export function proofRecord(domain: string, token: string): ProofRecord {
  return { name: `${RECORD_LABEL}.${domain}`, type: 'TXT', value: `svc-verification=${token}` };
}

/** Returns true when one of the texts of a name is exactly the value of the record. */
export function isProof({ value }: ProofRecord, texts: readonly string[]): boolean {
  return texts.includes(value);
}

/** The texts of a name that an error shows, and the characters of each. */
const SHOWN = { texts: 3, characters: 80 } as const;

/** Describes what the DNS has in place of the record, for the admin who publishes it. */
export function describeMismatch({ name }: ProofRecord, texts: readonly string[]): string {
  const then = 'Publish the record, wait until the DNS shows it, and verify again.';
  if (texts.length === 0) return `${name} has no TXT record. ${then}`;
  const shown = texts
    .slice(0, SHOWN.texts)
    .map((text) => JSON.stringify(toSingleLine(text, SHOWN.characters) ?? ''));
  const more = texts.length > SHOWN.texts ? ` and ${texts.length - SHOWN.texts} more` : '';
  return `${name} has no TXT record with the expected value, but ${shown.join(', ')}${more}. ${then}`;
}
