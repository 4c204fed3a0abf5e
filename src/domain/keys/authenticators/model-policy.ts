import type { AaguidPolicy } from '#platform/config/table/shapes.js';
import { modelName, MODELS, sortedNames } from './authenticator-models.js';

/** The decision about a model, with the reason of a refusal for the client. */
export type ModelDecision =
  { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

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
