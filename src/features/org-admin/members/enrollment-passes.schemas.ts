import { z } from 'zod';
import type { DemandedPass } from '#domain/keys/enrollment-passes/enrollment-pass.js';
import type { Renewal } from '#domain/keys/enrollment-passes/give-pass.js';

/** The answer with a new pass. Only this answer contains the pass itself. */
export const NEW_PASS_JSON = z.object({
  pass: z.string(),
  expires_at: z.iso.datetime(),
  /** The numbers of the member's ended credentials, by their kind. */
  ended: z.object({
    sessions: z.int(),
    certificates: z.int(),
    keys: z.int(),
    github_tokens: z.int(),
    grants: z.int().optional(),
    tokens: z.int().optional(),
    /** The number of ended SSH keys that had been proven to be in a security key. */
    ssh_keys: z.int().optional(),
    enrollment_passes: z.int().optional(),
    /** The number of ended API tokens that the member made. */
    api_tokens: z.int().optional(),
    /** The number of event receivers that are paused, because the member set their address. */
    event_receivers: z.int().optional(),
  }),
});
/** The type of the answer with a new pass. */
export type NewPassJson = z.output<typeof NEW_PASS_JSON>;

/** The pass that a member needs to enroll a key: a list of one or none, without its secret. */
export const PASSES_JSON = z.object({
  passes: z.array(
    z.object({
      /** The id of the admin who made the pass; null for the operator of the service. */
      created_by: z.string().nullable(),
      created_at: z.iso.datetime(),
      expires_at: z.iso.datetime(),
      /** True for a pass that was withdrawn, so that the member needs another one. */
      withdrawn: z.boolean(),
    }),
  ),
  /**
   * True if the member can enroll a key only with a pass. That stays so if the last pass has
   * expired or was withdrawn.
   */
  demanded: z.boolean(),
});
/** The type of the pass that a member needs, in the JSON of the API. */
export type PassesJson = z.output<typeof PASSES_JSON>;

/** Renders a new pass as JSON. */
export function newPassJson({ pass, ended }: Renewal): NewPassJson {
  return {
    pass: pass.secret,
    expires_at: pass.expiresAt.toISOString(),
    ended: { sessions: 0, certificates: 0, keys: 0, github_tokens: 0, ...ended },
  };
}

/** Renders the pass that a member needs as JSON. */
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
