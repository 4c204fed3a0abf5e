import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { AaguidPolicy } from '#platform/config/config.js';

/** Whether a model may enroll, and otherwise why not, for the client. */
export type ModelDecision =
  { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

const MODELS = new Map(
  z
    .array(
      z.object({
        aaguid: z.guid().lowercase(),
        model: z.string().min(1),
        policies: z.array(z.enum(['fips-only', 'yubikey-5'])),
      }),
    )
    .parse(JSON.parse(readFileSync(modelTable(), 'utf8')))
    .map((row) => [row.aaguid, row] as const),
);

/** The table lies as far from here in the sources as in the build. */
function modelTable(): URL {
  return new URL('../../../config/authenticator-models.json', import.meta.url);
}

/**
 * Applies SVC_ALLOWED_AAGUIDS to a model. It concerns enrollment only: a key that is enrolled stays.
 *
 * @param aaguid as the attestation certificate states it; null when it states none, which no list can allow
 */
export function decideModel(policy: AaguidPolicy, aaguid: string | null): ModelDecision {
  if (policy.kind === 'any') return { allowed: true };
  if (aaguid === null) {
    return { allowed: false, reason: "The key's certificate does not name its model." };
  }
  const isListed =
    policy.kind === 'list'
      ? policy.aaguids.has(aaguid)
      : MODELS.get(aaguid)?.policies.includes(policy.kind) === true;
  if (isListed) return { allowed: true };
  return { allowed: false, reason: `This model of key (${aaguid}) is not allowed here.` };
}

/** The vendor's name of a model, or null for one that is not in the table or not known at all. */
export function modelName(aaguid: string | null): string | null {
  return (aaguid !== null && MODELS.get(aaguid)?.model) || null;
}
