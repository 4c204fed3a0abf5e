import { z } from 'zod';
import type {
  GivenAddress,
  PartedMember,
  Readmitted,
} from '#domain/directory/member-ties.service.js';
import { parseEmailAddress } from '#domain/organizations/email-address.js';
import { ENDED_MEMBER_JSON, endedMemberJson } from './members.schemas.js';

/**
 * The body of a request that readmits a removed person by the e-mail address. The parsed address is
 * in its normal form.
 */
export const READMIT_BODY = z
  .strictObject({
    email: z
      .string()
      .max(512)
      .transform((text, context) => {
        const address = parseEmailAddress(text);
        if (address !== undefined) return address;
        context.addIssue({ code: 'custom', message: 'must be an e-mail address' });
        return z.NEVER;
      })
      .describe('The e-mail address of the removed person.'),
  })
  .describe('The person to readmit.');

/** The answer to a request that readmits a removed person by the e-mail address. */
export const READMITTED_JSON = z
  .object({
    email: z.string().describe('The address.'),
    identities: z
      .int()
      .describe('The identities of the person at identity providers that may sign in again.'),
    given_to: z
      .guid()
      .nullable()
      .describe('The id of the SCIM record that got the address; null if there is none.'),
  })
  .describe('A readmitted person.');
/**
 * The type of the answer to a request that readmits a removed person, by which the compiler checks
 * answers.
 */
export type ReadmittedJson = z.output<typeof READMITTED_JSON>;

/**
 * The answer to a request that separates a member from SCIM records. It has the member, and the ids
 * of the records.
 */
export const PARTED_JSON = ENDED_MEMBER_JSON.extend({
  parted_from: z.array(z.guid()).describe('The ids of the records from which it was parted.'),
}).meta({ id: 'PartedMember', description: 'A member after the separation from a record.' });
/**
 * The type of the answer to a request that separates a person from a SCIM record, by which the
 * compiler checks answers.
 */
export type PartedJson = z.output<typeof PARTED_JSON>;

/**
 * The answer after an admin has given a SCIM record the e-mail address that is its userName. Until
 * then the record could not sign in with the address, because another member (`taken_from`) had it.
 */
export const GIVEN_ADDRESS_JSON = ENDED_MEMBER_JSON.extend({
  taken_from: z.guid().nullable().describe('The id of the member who had the address.'),
}).meta({ id: 'GivenAddress', description: 'A SCIM record that got its withheld address.' });
/**
 * The type of the answer for a SCIM record that got its withheld e-mail address, by which the
 * compiler checks answers.
 */
export type GivenAddressJson = z.output<typeof GIVEN_ADDRESS_JSON>;

/**
 * Renders the answer after a person was readmitted, with the number of the person's identities that
 * may sign in again.
 */
export function readmittedJson({ email, identities, givenTo }: Readmitted): ReadmittedJson {
  return { email, identities, given_to: givenTo };
}

/**
 * Renders a member after the separation from SCIM records, with what ended and the ids of the
 * records.
 */
export function partedJson({ member, ended, partedFrom }: PartedMember): PartedJson {
  return { ...endedMemberJson(member, ended), parted_from: [...partedFrom] };
}

/** Renders a SCIM record that got an e-mail address, and the member who had it, as JSON. */
export function givenAddressJson({ member, ended, takenFrom }: GivenAddress): GivenAddressJson {
  return { ...endedMemberJson(member, ended), taken_from: takenFrom };
}
