import { readFileSync } from 'node:fs';
import type { DemoArguments } from '@svc/demo/arguments';
import { portOf } from '@svc/demo/variables';
import { trustAnchorFromPem, type TrustAnchor } from '@svc/webauthn-policy';
import { readProcessEnvironment, type Environment } from '#platform/config/environment.js';
import { freePort } from '@svc/stand-ins/loopback-server';
import { refusePublicOrigin } from './configuration.js';

/**
 * The facts that a start needs. They are checked before the application is loaded, which takes a
 * second, so that a wrong fact is reported at once.
 */
export interface StartFacts {
  readonly environment: Environment;
  /** The root certificates of `--attestation-root`. */
  readonly outsideRoots: readonly TrustAnchor[];
  /** A free port of localhost. */
  readonly port: number;
}

/**
 * Checks the environment, the root certificate of `--attestation-root` and the port.
 *
 * @throws Error with one line for what is wrong
 */
export async function checkStart({
  port,
  attestationRoot,
}: Pick<DemoArguments, 'port' | 'attestationRoot'>): Promise<StartFacts> {
  const environment = readProcessEnvironment();
  // This check comes first, so that no port is taken if the environment is refused.
  refusePublicOrigin(environment);
  const outsideRoots = readRoots(attestationRoot);
  return { environment, outsideRoots, port: await freePort(portOf(environment, port)) };
}

function readRoots(file: string | undefined): TrustAnchor[] {
  if (file === undefined) return [];
  try {
    return [trustAnchorFromPem(readFileSync(file, 'utf8'))];
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`--attestation-root: ${file} holds no root certificate (${reason})`, { cause });
  }
}
