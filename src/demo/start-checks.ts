import { readFileSync } from 'node:fs';
import { trustAnchorFromPem, type TrustAnchor } from '@svc/webauthn-policy';
import { readProcessEnvironment, type Environment } from '#platform/config/environment.js';
import { freePort } from '@svc/stand-ins/loopback-server';
import type { DemoArguments } from './arguments.js';
import { portOf, refusePublicOrigin } from './configuration.js';

/** The facts of a start that can refuse it, read before the application is loaded. */
export interface StartFacts {
  readonly environment: Environment;
  /** The roots of `--attestation-root`. */
  readonly outsideRoots: readonly TrustAnchor[];
  /** A free port of localhost. */
  readonly port: number;
}

/**
 * Checks the environment, the root of `--attestation-root` and the port.
 *
 * @throws Error with one line for what is wrong
 */
export async function checkStart({
  port,
  attestationRoot,
}: Pick<DemoArguments, 'port' | 'attestationRoot'>): Promise<StartFacts> {
  const environment = readProcessEnvironment();
  // first: no port is taken for such an environment
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
