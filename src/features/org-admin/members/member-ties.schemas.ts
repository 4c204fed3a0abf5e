import { z } from 'zod';
import type {
  GivenAddress,
  PartedMember,
  Readmitted,
} from '#domain/directory/member-ties.service.js';
import { parseEmailAddress } from '#domain/organizations/email-address.js';
import { ENDED_MEMBER_JSON, endedMemberJson } from './members.schemas.js';

/**
 * The body of a request that lets the address of a removed person in again. The address is
 * normalized.
 */
export const READMIT_BODY = z.strictObject({
  email: z
    .string()
    .max(512)
    .transform((text, context) => {
      const address = parseEmailAddress(text);
      if (address !== undefined) return address;
      context.addIssue({ code: 'custom', message: 'must be an e-mail address' });
      return z.NEVER;
    }),
});

/** The answer for an address that an admin has let in again. */
export const READMITTED_JSON = z.object({
  email: z.string(),
  /** The number of identities at identity providers that may sign in again. */
  identities: z.int(),
  /** The id of the record that got the address to sign in with; null if there is none. */
  given_to: z.guid().nullable(),
});
/** The type of the answer for an address that an admin has let in again. */
export type ReadmittedJson = z.output<typeof READMITTED_JSON>;

/**
 * The answer to an act that separates a person from a record: the person, and the ids of the former
 * records.
 */
export const PARTED_JSON = ENDED_MEMBER_JSON.extend({ parted_from: z.array(z.guid()) });
/** The type of the answer to an act that separates a person from a record. */
export type PartedJson = z.output<typeof PARTED_JSON>;

/** The answer for a record that got the address that was withheld from it. */
export const GIVEN_ADDRESS_JSON = ENDED_MEMBER_JSON.extend({ taken_from: z.guid().nullable() });
/** The type of the answer for a record that got the address that was withheld from it. */
export type GivenAddressJson = z.output<typeof GIVEN_ADDRESS_JSON>;

/** Renders the answer for an address that may sign in again as JSON. */
export function readmittedJson({ email, identities, givenTo }: Readmitted): ReadmittedJson {
  return { email, identities, given_to: givenTo };
}

/** Renders a person after the separation from a record as JSON. */
export function partedJson({ member, ended, partedFrom }: PartedMember): PartedJson {
  return { ...endedMemberJson(member, ended), parted_from: [...partedFrom] };
}

/** Renders a record with its new address as JSON. */
export function givenAddressJson({ member, ended, takenFrom }: GivenAddress): GivenAddressJson {
  return { ...endedMemberJson(member, ended), taken_from: takenFrom };
}
