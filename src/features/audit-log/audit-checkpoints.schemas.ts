import { z } from 'zod';
import { pageLimit } from '#platform/text/query-number.js';
import type { Checkpoint } from '#domain/audit/seal/checkpoints.repository.js';

/** The largest number of checkpoints on one page. */
const LARGEST_PAGE = 1000;

const number = (text: z.ZodString) =>
  text
    .regex(/^\d{1,15}$/, 'must be a number')
    .transform(Number)
    .meta({ type: 'integer', minimum: 0 });

/** The query of `GET /api/v1/org/audit-checkpoints`. */
export const CHECKPOINTS_QUERY = z
  .strictObject({
    after: z
      .string()
      .regex(/^(?:newest|\d{1,18}\.\d{1,15})$/, 'must be the next of a page before, or newest')
      .optional()
      .describe('The `next` of the page before; `newest` shows the newest checkpoint alone.'),
    limit: pageLimit(LARGEST_PAGE)
      .optional()
      .describe(`The most checkpoints of the page: ${LARGEST_PAGE} at most.`),
  })
  .transform(({ after = '0.0', limit }) => {
    const [epoch = '0', size] = after.split('.');
    return {
      limit,
      after: size === undefined ? ('newest' as const) : { epoch, size: Number(size) },
    };
  });
/** The query of `GET /api/v1/org/audit-checkpoints` after validation, as the handler gets it. */
export type CheckpointsRequest = z.output<typeof CHECKPOINTS_QUERY>;

/**
 * The query of `GET /api/v1/org/audit-checkpoints/proof`: an epoch of the audit log, and two sizes
 * of the epoch's hash tree. A restored database begins a new epoch.
 */
export const PROOF_QUERY = z.strictObject({
  epoch: z
    .string()
    .regex(/^\d{1,18}$/, 'must be an epoch')
    .describe('The epoch of both checkpoints.'),
  from: number(z.string()).describe('The size of the earlier checkpoint.'),
  to: number(z.string()).describe('The size of the later checkpoint.'),
});
/**
 * The query of `GET /api/v1/org/audit-checkpoints/proof` after validation, as the handler gets it.
 */
export type ProofRequest = z.output<typeof PROOF_QUERY>;

/** A page of checkpoints in the JSON of the API. */
export const CHECKPOINTS_JSON = z
  .object({
    checkpoints: z
      .array(
        z.object({
          epoch: z.string().describe('The epoch of the log, which a restored database begins.'),
          size: z.number().describe('The number of sealed events of the epoch.'),
          note: z.string().describe('The checkpoint as a signed note (c2sp.org/tlog-checkpoint).'),
        }),
      )
      .describe('The checkpoints, the oldest first.'),
    keys: z.array(z.string()).describe('The public keys that have signed any checkpoint.'),
    next: z
      .string()
      .nullable()
      .describe('The value of `after` behind the last checkpoint; null if there is none.'),
  })
  .describe('A page of checkpoints of the audit log.');
/** The type of checkpoints in the JSON of the API, by which the compiler checks answers. */
export type CheckpointsJson = z.output<typeof CHECKPOINTS_JSON>;

/**
 * A proof that a later checkpoint extends an earlier one of the same epoch (RFC 9162 §2.1.4).
 * `previous` is the last checkpoint of the epoch before, which the first leaf of the hash tree
 * names.
 */
export const PROOF_JSON = z
  .object({
    hashes: z.array(z.string()).describe('The hashes of the proof, in base64.'),
    previous: z
      .string()
      .nullable()
      .describe('The last checkpoint of the epoch before; null in the first epoch.'),
  })
  .describe('A consistency proof (RFC 9162 §2.1.4).');
/** The type of a proof in the JSON of the API, by which the compiler checks answers. */
export type ProofJson = z.output<typeof PROOF_JSON>;

/** Returns the parts of a checkpoint that the API shows. */
export function checkpointJson({ epoch, size, note }: Checkpoint) {
  return { epoch, size, note };
}
