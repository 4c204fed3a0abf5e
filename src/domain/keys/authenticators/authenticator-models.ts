import { readFileSync } from 'node:fs';
import { z } from 'zod';

/**
 * The models of security keys in `config/authenticator-models.json`, by their AAGUIDs. An AAGUID is
 * the id of a model in FIDO. `policies` are the values of SVC_ALLOWED_AAGUIDS that accept the
 * model.
 */
export const MODELS = new Map(
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
 * Returns the URL of the JSON file with the models. Its relative path is the same from the sources
 * and from the build.
 */
function modelTable(): URL {
  return new URL('../../../../config/authenticator-models.json', import.meta.url);
}

/** Sorts the names of models and removes duplicates, because several AAGUIDs can have one name. */
export function sortedNames(names: readonly string[]): string[] {
  return [...new Set(names)].toSorted();
}

/**
 * Returns the vendor's name of the model with an AAGUID; null without an AAGUID, or if {@link
 * MODELS} does not have the AAGUID.
 */
export function modelName(aaguid: string | null): string | null {
  return (aaguid !== null && MODELS.get(aaguid)?.model) || null;
}

/** Returns the AAGUIDs of the models whose names contain a text. Upper and lower case are equal. */
export function aaguidsOfModels(text: string): string[] {
  const part = text.trim().toLowerCase();
  const rows = [...MODELS.values()].filter(({ model }) => model.toLowerCase().includes(part));
  return rows.map(({ aaguid }) => aaguid);
}

/** The vendor's names of all models, sorted. */
export const MODEL_NAMES: readonly string[] = sortedNames(
  [...MODELS.values()].map(({ model }) => model),
);

/**
 * Returns the AAGUIDs of a model. There can be several, because a vendor gives each version of a
 * model its own.
 */
export function aaguidsOfModel(name: string): string[] {
  return [...MODELS.values()].filter(({ model }) => model === name).map(({ aaguid }) => aaguid);
}

/**
 * The AAGUIDs of all models in {@link MODELS}. `FIPS_AAGUIDS` has those of the models that are FIPS
 * 140 certified.
 */
export const KNOWN_AAGUIDS: readonly string[] = [...MODELS.keys()];
export const FIPS_AAGUIDS: readonly string[] = [...MODELS.values()]
  .filter(({ policies }) => policies.includes('fips-only'))
  .map(({ aaguid }) => aaguid);

/**
 * Returns true for a key that a `packed` attestation proves to be of a FIPS-certified model. A key
 * that was enrolled by the older format `fido-u2f` does not count, because it cannot verify its
 * user.
 */
export function isFipsKey(key: {
  readonly attestation: string;
  readonly aaguid: string | null;
}): boolean {
  return key.attestation === 'packed' && isFipsModel(key.aaguid);
}

/** Returns true for the AAGUID of a model that is FIPS 140 certified. */
export function isFipsModel(aaguid: string | null): boolean {
  return aaguid !== null && FIPS_AAGUIDS.includes(aaguid);
}
