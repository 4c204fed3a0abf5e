import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { AaguidPolicy } from '#platform/config/table/shapes.js';

/** The decision about a model, with the reason of a refusal for the client. */
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

/**
 * Returns the address of the table of models. The relative path is the same from the sources and
 * from the build.
 */
function modelTable(): URL {
  return new URL('../../../../../config/authenticator-models.json', import.meta.url);
}

/**
 * Applies SVC_ALLOWED_AAGUIDS to a model. It concerns enrollment only: a key that is enrolled
 * stays.
 *
 * @param aaguid as the attestation certificate states it; null when it states none, which no list
 *   can allow
 */
export function decideModel(policy: AaguidPolicy, aaguid: string | null): ModelDecision {
  if (policy.kind === 'any') return { allowed: true };
  const { summary } = allowedModels(policy);
  if (aaguid === null) {
    return {
      allowed: false,
      reason: `Your security key does not name its model. This service takes ${summary}.`,
    };
  }
  const isListed =
    policy.kind === 'list'
      ? policy.aaguids.has(aaguid)
      : MODELS.get(aaguid)?.policies.includes(policy.kind) === true;
  if (isListed) return { allowed: true };
  const name = modelName(aaguid) ?? `The model ${aaguid}`;
  return {
    allowed: false,
    reason: `${name} is not accepted here. This service takes ${summary}.`,
  };
}

/** The models that a deployment accepts, as the enrollment page shows them. */
export interface AllowedModels {
  /** A phrase that follows "takes" on the page. */
  readonly summary: string;
  /**
   * The vendor's names, sorted; an AAGUID for a model that is in no table. Empty if any model will
   * do.
   */
  readonly names: readonly string[];
}

/** Returns the models that SVC_ALLOWED_AAGUIDS allows to enroll. */
export function allowedModels(policy: AaguidPolicy): AllowedModels {
  if (policy.kind === 'any') {
    return { summary: 'every YubiKey and Security Key made by Yubico', names: [] };
  }
  if (policy.kind === 'list') {
    const names = namesOf([...policy.aaguids].map((aaguid) => modelName(aaguid) ?? aaguid));
    return { summary: `these models: ${names.join(', ')}`, names };
  }
  const rows = [...MODELS.values()].filter(({ policies }) => policies.includes(policy.kind));
  return { summary: SUMMARIES[policy.kind], names: namesOf(rows.map(({ model }) => model)) };
}

const SUMMARIES = {
  'fips-only': 'FIPS-certified YubiKeys only',
  'yubikey-5': 'the YubiKey 5 Series only',
} as const;

function namesOf(names: readonly string[]): string[] {
  return [...new Set(names)].toSorted();
}

/** Returns the vendor's name of a model; null for a model that is not in the table, or unknown. */
export function modelName(aaguid: string | null): string | null {
  return (aaguid !== null && MODELS.get(aaguid)?.model) || null;
}

/** Returns the AAGUIDs of the models whose names contain a text, in either case. */
export function aaguidsOfModels(text: string): string[] {
  const part = text.trim().toLowerCase();
  const rows = [...MODELS.values()].filter(({ model }) => model.toLowerCase().includes(part));
  return rows.map(({ aaguid }) => aaguid);
}

/** The vendor's names of all models, sorted. */
export const MODEL_NAMES: readonly string[] = namesOf(
  [...MODELS.values()].map(({ model }) => model),
);

/** Returns the AAGUIDs of a model: a vendor gives each version of a model its own. */
export function aaguidsOfModel(name: string): string[] {
  return [...MODELS.values()].filter(({ model }) => model === name).map(({ aaguid }) => aaguid);
}

/** The AAGUIDs of all models, and of those that are certified by FIPS 140. */
export const KNOWN_AAGUIDS: readonly string[] = [...MODELS.keys()];
export const FIPS_AAGUIDS: readonly string[] = [...MODELS.values()]
  .filter(({ policies }) => policies.includes('fips-only'))
  .map(({ aaguid }) => aaguid);

/**
 * Returns true for a key that a `packed` attestation proves to be of a FIPS-certified model. A key
 * enrolled as `fido-u2f` verifies no user, and so is none.
 */
export function isFipsKey(key: {
  readonly attestation: string;
  readonly aaguid: string | null;
}): boolean {
  return key.attestation === 'packed' && isFipsModel(key.aaguid);
}

/** Returns true for the AAGUID of a model that is certified by FIPS 140. */
export function isFipsModel(aaguid: string | null): boolean {
  return aaguid !== null && FIPS_AAGUIDS.includes(aaguid);
}
