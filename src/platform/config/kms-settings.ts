import { isHttpsOrLoopback } from '#platform/text/loopback.js';
import type { Config, KmsKeySetting, KmsKeyUse } from './config.js';
import type { Environment, Settings } from './environment.js';

/** The variables that name keys in AWS KMS, each with the use of its keys. */
const KMS_VARIABLES: Readonly<Partial<Record<keyof Settings, KmsKeyUse>>> = {
  SVC_DOCUMENT_KEY_KMS_KEY_ID: 'data keys',
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
