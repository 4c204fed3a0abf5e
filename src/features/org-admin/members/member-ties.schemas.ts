import { z } from 'zod';
import type {
  GivenAddress,
  PartedMember,
  Readmitted,
} from '#domain/directory/member-ties.service.js';
import { parseEmailAddress } from '#domain/organizations/email-address.js';
import { ENDED_MEMBER_JSON, endedMemberJson } from './members.schemas.js';

/** The body of a readmission. The address is normalized. */
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

/** An address that an admin let in again. */
export const READMITTED_JSON = z.object({
  email: z.string(),
  /** The number of identities that may sign in again. */
  identities: z.int(),
  /** The record that got the address to sign in with. */
  given_to: z.guid().nullable(),
});
/** The result of {@link READMITTED_JSON}. */
export type ReadmittedJson = z.output<typeof READMITTED_JSON>;

/**
 * The answer to an act that parts a person from a record: the person, and the ids of the former
 * records.
 */
export const PARTED_JSON = ENDED_MEMBER_JSON.extend({ parted_from: z.array(z.guid()) });
/** The result of {@link PARTED_JSON}. */
export type PartedJson = z.output<typeof PARTED_JSON>;

/** A record that got the address that was withheld from it. */
export const GIVEN_ADDRESS_JSON = ENDED_MEMBER_JSON.extend({ taken_from: z.guid().nullable() });
/** The result of {@link GIVEN_ADDRESS_JSON}. */
export type GivenAddressJson = z.output<typeof GIVEN_ADDRESS_JSON>;

/** Renders a readmission as JSON. */
export function readmittedJson({ email, identities, givenTo }: Readmitted): ReadmittedJson {
  return { email, identities, given_to: givenTo };
}

/** Renders a person after a parting as JSON. */
export function partedJson({ member, ended, partedFrom }: PartedMember): PartedJson {
  return { ...endedMemberJson(member, ended), parted_from: [...partedFrom] };
}

/** Renders a record with its new address as JSON. */
export function givenAddressJson({ member, ended, takenFrom }: GivenAddress): GivenAddressJson {
  return { ...endedMemberJson(member, ended), taken_from: takenFrom };
}
