import { isHttpsOrLoopback } from '#platform/text/loopback.js';
import type { Config, KmsKeySetting, KmsKeyUse, RootSecretSource } from './config.js';
import { ENVIRONMENT, PEM_KEYS, type Environment, type Settings } from './environment.js';
import { isPrivate } from '#platform/config/shapes/setting-shapes.js';

/** The variables that name keys in AWS KMS, each with the use of its keys. */
const KMS_VARIABLES: Readonly<Partial<Record<keyof Settings, KmsKeyUse>>> = {
  SVC_JWT_HMAC_KMS_KEY_ID: 'HMAC',
  SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS: 'HMAC',
  SVC_OIDC_SIGNING_KMS_KEY_ID: 'ES256',
  SVC_OIDC_RSA_SIGNING_KMS_KEY_ID: 'RS256',
  SVC_DOCUMENT_KEY_KMS_KEY_ID: 'data keys',
  SVC_SSH_CA_KMS_KEY_ID: 'Ed25519 or ES256',
};

/** The addresses of KMS, the one that counts first. */
const ENDPOINTS = ['AWS_ENDPOINT_URL_KMS', 'AWS_ENDPOINT_URL'] as const;

/** Collects every key that a variable names, and the address of KMS. */
export function kmsSettings(settings: Settings): Config['kms'] {
  const keys = (Object.keys(KMS_VARIABLES) as (keyof Settings)[]).flatMap((variable) =>
    keysOf(variable, settings[variable]),
  );
  const endpoint = ENDPOINTS.map((name) => settings[name]).find((value) => value !== undefined);
  return { keys, endpoint };
}

/** The variables of PEM keys, each with that of the keys in KMS which sign before them. */
const KMS_BEFORE_PEM = {
  SVC_OIDC_SIGNING_KEY: 'SVC_OIDC_SIGNING_KMS_KEY_ID',
  SVC_OIDC_RSA_SIGNING_KEY: 'SVC_OIDC_RSA_SIGNING_KMS_KEY_ID',
} as const;

/** Checks that PEM keys begin with a private one, unless a key in KMS signs. */
export function signingKeyProblems(environment: Environment): string[] {
  const names = Object.keys(KMS_BEFORE_PEM) as (keyof typeof KMS_BEFORE_PEM)[];
  return names.flatMap((name) => {
    const parsed = ENVIRONMENT.shape[name].safeParse(environment[name]);
    const [first] = parsed.data ?? [];
    const isSigning = first === undefined || isPrivate(first);
    const isOutside = environment[KMS_BEFORE_PEM[name]] !== undefined;
    return isSigning || isOutside ? [] : [`${name}: ${PEM_KEYS[name]}`];
  });
}

/** Checks the address of KMS where a key is configured: it must be https, loopback apart. */
export function kmsProblems(environment: Environment): string[] {
  const hasKey = Object.keys(KMS_VARIABLES).some((name) => environment[name] !== undefined);
  const name = ENDPOINTS.find((one) => environment[one] !== undefined);
  if (!hasKey || name === undefined) return [];
  const isSafe = isHttpsOrLoopback(environment[name] ?? '');
  return isSafe ? [] : [`${name}: must be https (http only for localhost)`];
}

function keysOf(variable: keyof Settings, value: Settings[keyof Settings]): KmsKeySetting[] {
  const use = KMS_VARIABLES[variable];
  if (use === undefined || value === undefined) return [];
  const ids = [value].flat().filter((id) => typeof id === 'string');
  return ids.map((keyId) => ({ variable, keyId, use }));
}

/** Collects the sources of the root secret and of the previous one. */
export function rootSecretSource(settings: Settings): RootSecretSource {
  return {
    root: settings.SVC_JWT_SECRET,
    kmsKeyId: settings.SVC_JWT_HMAC_KMS_KEY_ID,
    previousRoot: settings.SVC_JWT_SECRET_PREVIOUS,
    previousKmsKeyId: settings.SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS,
  };
}

/** Checks that there is exactly one root secret, and at most one previous one. Each may be a text or a key in KMS. */
export function rootSecretProblems(environment: Environment): string[] {
  const isSet = (name: keyof Settings) => environment[name] !== undefined;
  const problems: string[] = [];
  if (!isSet('SVC_JWT_SECRET') && !isSet('SVC_JWT_HMAC_KMS_KEY_ID')) {
    problems.push('SVC_JWT_SECRET: is required');
  }
  for (const previous of ['', '_PREVIOUS'] as const) {
    const [text, key] = [
      `SVC_JWT_SECRET${previous}`,
      `SVC_JWT_HMAC_KMS_KEY_ID${previous}`,
    ] as const;
    if (isSet(text) && isSet(key)) {
      problems.push(`${text}: must not be set beside ${key}; keep the one that is the secret`);
    }
  }
  return problems;
}
