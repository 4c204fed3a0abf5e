import type { AaguidPolicy } from '#platform/config/table/shapes.js';
import { modelName, MODELS, sortedNames } from './authenticator-models.js';

/**
 * The decision if a security key of a model may be enrolled. A refusal has a reason for the client.
 */
export type ModelDecision =
  { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

/**
 * Decides by SVC_ALLOWED_AAGUIDS if a security key of a model may be enrolled. A key that is
 * enrolled already stays, even if its model is not allowed any more.
 *
 * @param aaguid the id of the model, as the attestation certificate states it; null if it states
 *   none, which no list can allow
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
  /** A phrase for the enrollment page, for a sentence such as “This service takes …”. */
  readonly summary: string;
  /**
   * The vendor's names of the models, sorted; the AAGUID for a model that {@link MODELS} does not
   * have. Empty if every model is allowed.
   */
  readonly names: readonly string[];
}

/** Returns the models that SVC_ALLOWED_AAGUIDS allows, for the enrollment page. */
export function allowedModels(policy: AaguidPolicy): AllowedModels {
  if (policy.kind === 'any') {
    return { summary: 'every YubiKey and Security Key made by Yubico', names: [] };
  }
  if (policy.kind === 'list') {
    const names = sortedNames([...policy.aaguids].map((aaguid) => modelName(aaguid) ?? aaguid));
    return { summary: `these models: ${names.join(', ')}`, names };
  }
  const rows = [...MODELS.values()].filter(({ policies }) => policies.includes(policy.kind));
  return { summary: SUMMARIES[policy.kind], names: sortedNames(rows.map(({ model }) => model)) };
}

const SUMMARIES = {
  'fips-only': 'FIPS-certified YubiKeys only',
  'yubikey-5': 'the YubiKey 5 Series only',
} as const;
