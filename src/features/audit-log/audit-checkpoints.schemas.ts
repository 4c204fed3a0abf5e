import { z } from 'zod';
import type { Checkpoint } from '#domain/audit/seal/checkpoints.repository.js';

/** The most checkpoints on a page. */
const LARGEST_PAGE = 1000;

const number = (text: z.ZodString) =>
  text.regex(/^\d{1,15}$/, 'must be a number').transform(Number);

/** The query of `GET /api/v1/org/audit-checkpoints`. */
export const CHECKPOINTS_QUERY = z
  .strictObject({
    /** The `next` of the page before; `newest` shows the newest checkpoint alone. */
    after: z
      .string()
      .regex(/^(?:newest|\d{1,18}\.\d{1,15})$/, 'must be the next of a page before, or newest')
      .optional(),
    limit: number(z.string()).pipe(z.int().min(1).max(LARGEST_PAGE)).optional(),
  })
  .transform(({ after = '0.0', limit }) => {
    const [epoch = '0', size] = after.split('.');
    return {
      limit,
      after: size === undefined ? ('newest' as const) : { epoch, size: Number(size) },
    };
  });
/** The query of `GET /api/v1/org/audit-checkpoints` after validation. */
export type CheckpointsRequest = z.output<typeof CHECKPOINTS_QUERY>;

/** The query of `GET /api/v1/org/audit-checkpoints/proof`: an epoch, and two sizes of its tree. */
export const PROOF_QUERY = z.strictObject({
  epoch: z.string().regex(/^\d{1,18}$/, 'must be an epoch'),
  from: number(z.string()),
  to: number(z.string()),
});
/** The query of `GET /api/v1/org/audit-checkpoints/proof` after validation. */
export type ProofRequest = z.output<typeof PROOF_QUERY>;

/**
 * Checkpoints, the oldest first: `note` is the signed text. `keys` has the public keys that have
 * signed any, and `next` is the cursor after the last checkpoint; null if there is none.
 */
export const CHECKPOINTS_JSON = z.object({
  checkpoints: z.array(z.object({ epoch: z.string(), size: z.number(), note: z.string() })),
  keys: z.array(z.string()),
  next: z.string().nullable(),
});
/** The type of checkpoints in the JSON of the API. */
export type CheckpointsJson = z.output<typeof CHECKPOINTS_JSON>;

/**
 * A consistency proof of RFC 9162, its hashes in base64, and the checkpoint that the first leaf of
 * the tree names.
 */
export const PROOF_JSON = z.object({
  hashes: z.array(z.string()),
  previous: z.string().nullable(),
});
/** The type of a proof in the JSON of the API. */
export type ProofJson = z.output<typeof PROOF_JSON>;

/** Renders a checkpoint as JSON. */
export function checkpointJson({ epoch, size, note }: Checkpoint) {
  return { epoch, size, note };
}
