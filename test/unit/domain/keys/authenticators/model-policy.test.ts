import { describe, expect, it } from 'vitest';
import { modelName } from '#domain/keys/authenticators/authenticator-models.js';
import { allowedModels, decideModel } from '#domain/keys/authenticators/model-policy.js';

const YUBIKEY_5_NFC = 'fa2b99dc-9e39-4257-8f92-4a30d23c4118';
const YUBIKEY_5_FIPS = '73bb0cd4-e502-49b8-9c6f-b59445bf720b';
const YUBIKEY_5_FIPS_PREVIEW = '5b0e46ba-db02-44ac-b979-ca9b84f5e335';
const SECURITY_KEY_NFC = '6d44ba9b-f6ec-2e49-b930-0c8fe920cb73';
const YUBIKEY_BIO_FIDO = 'd8522d9f-575b-4866-88a9-ba99fa02f35b';
const UNKNOWN = '00000000-0000-4000-8000-000000000000';

describe('SVC_ALLOWED_AAGUIDS', () => {
  it('allows every model when it is empty: known, unknown and unnamed', () => {
    for (const aaguid of [YUBIKEY_5_NFC, UNKNOWN, null]) {
      expect(decideModel({ kind: 'any' }, aaguid)).toEqual({ allowed: true });
    }
  });

  it.each([
    ['fips-only', YUBIKEY_5_FIPS, true],
    ['fips-only', YUBIKEY_5_NFC, false],
    ['fips-only', YUBIKEY_5_FIPS_PREVIEW, false],
    ['yubikey-5', YUBIKEY_5_NFC, true],
    ['yubikey-5', YUBIKEY_5_FIPS, true],
    ['yubikey-5', YUBIKEY_5_FIPS_PREVIEW, false],
    ['yubikey-5', SECURITY_KEY_NFC, false],
    ['yubikey-5', YUBIKEY_BIO_FIDO, false],
    ['yubikey-5', UNKNOWN, false],
  ] as const)('%s, for the model %s: %s', (kind, aaguid, allowed) => {
    expect(decideModel({ kind }, aaguid)).toMatchObject({ allowed });
  });

  it('allows only the listed models, even one that is in no table', () => {
    const policy = { kind: 'list', aaguids: new Set([UNKNOWN]) } as const;
    expect(decideModel(policy, UNKNOWN)).toEqual({ allowed: true });
    expect(decideModel(policy, YUBIKEY_5_NFC)).toEqual({
      allowed: false,
      reason: expect.stringContaining('YubiKey 5 Series with NFC') as string,
    });
  });

  it('names a model that is in no table by its AAGUID when it refuses it', () => {
    expect(decideModel({ kind: 'fips-only' }, UNKNOWN)).toEqual({
      allowed: false,
      reason: `The model ${UNKNOWN} is not accepted here. This service takes FIPS-certified YubiKeys only.`,
    });
  });

  it.each([
    ['fips-only', 'FIPS-certified YubiKeys only'],
    ['yubikey-5', 'the YubiKey 5 Series only'],
  ] as const)('%s refuses a key that names no model', (kind, summary) => {
    expect(decideModel({ kind }, null)).toEqual({
      allowed: false,
      reason: `Your security key does not name its model. This service takes ${summary}.`,
    });
  });
});

describe('10.24 allowedModels', () => {
  it('lists no models when the policy allows all', () => {
    expect(allowedModels({ kind: 'any' })).toEqual({
      summary: 'every YubiKey and Security Key made by Yubico',
      names: [],
    });
  });

  it.each(['fips-only', 'yubikey-5'] as const)('names each model of %s once, sorted', (kind) => {
    const { names } = allowedModels({ kind });
    expect(names.length).toBeGreaterThan(2);
    expect(names).toEqual([...new Set(names)].toSorted());
    expect(names.every((name) => name.startsWith('YubiKey 5'))).toBe(true);
  });

  it('lists a model by its name, or by its AAGUID when the table does not know it', () => {
    const aaguids = new Set([YUBIKEY_5_NFC, UNKNOWN]);
    const { summary, names } = allowedModels({ kind: 'list', aaguids });
    expect(names).toEqual([UNKNOWN, 'YubiKey 5 Series with NFC']);
    expect(summary).toBe(`these models: ${UNKNOWN}, YubiKey 5 Series with NFC`);
  });
});

describe('modelName', () => {
  it('"gives the vendor\'s name of a known model, and null for an unknown one"', () => {
    expect(modelName(YUBIKEY_5_NFC)).toBe('YubiKey 5 Series with NFC');
    expect(modelName(YUBIKEY_5_FIPS_PREVIEW)).toBe('YubiKey 5 FIPS Series with Lightning Preview');
    expect(modelName(UNKNOWN)).toBeNull();
    expect(modelName(null)).toBeNull();
  });
});
