import { z } from 'zod';
import type { DemandedPass } from '#domain/keys/enrollment-passes/enrollment-pass.js';
import type { Renewal } from '#domain/keys/enrollment-passes/give-pass.js';
import { ENDED_JSON } from './members.schemas.js';

/** The answer with a new pass. No other answer contains the pass itself. */
export const NEW_PASS_JSON = z
  .object({
    pass: z.string().describe('The pass. Only this answer has it.'),
    expires_at: z.iso.datetime().describe('The time at which it expires.'),
    ended: ENDED_JSON.extend({
      sessions: z.int().describe('The ended sessions.'),
      certificates: z.int().describe('The revoked SSH certificates.'),
      keys: z.int().describe('The removed security keys.'),
      github_tokens: z.int().describe('The ended GitHub tokens.'),
    })
      .omit({ applications: true })
      .describe('The numbers of ended credentials of the member.'),
  })
  .meta({ id: 'NewEnrollmentPass', description: 'A new re-enrollment pass.' });
/** The type of the answer with a new pass, by which the compiler checks answers. */
export type NewPassJson = z.output<typeof NEW_PASS_JSON>;

/** The pass that a member needs to enroll a key: a list of one or none, without its secret. */
export const PASSES_JSON = z
  .object({
    passes: z
      .array(
        z.object({
          created_by: z
            .string()
            .nullable()
            .describe('The id of the admin who made it; null for the operator of the service.'),
          created_at: z.iso.datetime().describe('The time of its creation.'),
          expires_at: z.iso.datetime().describe('The time at which it expires.'),
          withdrawn: z.boolean().describe('True if it was withdrawn: the member needs another.'),
        }),
      )
      .describe('The pass, without its secret; none or one.'),
    demanded: z
      .boolean()
      .describe('True if a key is enrolled only with a pass, also after the last one has ended.'),
  })
  .meta({ id: 'EnrollmentPasses', description: 'The pass that a member needs.' });
/**
 * The type of the pass that a member needs, in the JSON of the API, by which the compiler checks
 * answers.
 */
export type PassesJson = z.output<typeof PASSES_JSON>;

/** Renders a new pass as JSON, with the numbers of the credentials that its creation ended. */
export function newPassJson({ pass, ended }: Renewal): NewPassJson {
  return {
    pass: pass.secret,
    expires_at: pass.expiresAt.toISOString(),
    ended: { sessions: 0, certificates: 0, keys: 0, github_tokens: 0, ...ended },
  };
}

/** Renders the pass that a member needs as JSON: an empty list if the member needs none. */
export function passesJson(pass: DemandedPass | undefined): PassesJson {
  if (!pass) return { passes: [], demanded: false };
  const { createdBy, createdAt, expiresAt, isWithdrawn } = pass;
  return {
    passes: [
      {
        created_by: createdBy,
        created_at: createdAt.toISOString(),
        expires_at: expiresAt.toISOString(),
        withdrawn: isWithdrawn,
      },
    ],
    demanded: true,
  };
}
