import type { SoftwareKey } from '@svc/stand-ins/software-key';
import type { DemoApplication } from '../application/application.js';
import type { HttpClient } from './http-client.js';
import type { LocalSshd } from './ssh/local-sshd.js';

/** The data that every step gets, and the results of earlier steps that later ones need. */
export interface ScenarioContext {
  readonly client: HttpClient;
  /**
   * The e-mail address of the user. Each run uses a new domain, so that the user is the first in an
   * organization and becomes its admin.
   */
  readonly email: string;
  /** The software key of the user. */
  readonly key: SoftwareKey;
  /**
   * The slug of the demo's own identity provider; undefined if the environment names other
   * providers.
   */
  readonly provider: string | undefined;
  /** The path of the `svc` command, a file that Node runs. */
  readonly command: string;
  ssh?: SshCredential;
  colleague?: Colleague;
}

/** The parts of an issued SSH certificate that a later step needs. */
export interface SshCredential {
  readonly certificate: string;
  readonly serial: string;
  readonly ca_public_key: string;
}

/**
 * A second user, created by SCIM as an identity provider does it, with an HTTP client and a
 * certificate of their own.
 */
export interface Colleague {
  readonly id: string;
  readonly email: string;
  readonly client: HttpClient;
  readonly serial: string;
  /**
   * An sshd that accepts the certificate of the colleague; undefined on a machine without OpenSSH.
   */
  readonly sshd: LocalSshd | undefined;
  /** The application that keeps a session of its own for the colleague. */
  readonly application: DemoApplication;
  /** The SCIM token of the identity provider. */
  readonly scimToken: string;
}

/**
 * The result of a step: `line` is for readers of the terminal, and `result` has the facts for
 * programs (JSON).
 */
export interface StepResult {
  readonly line: string;
  readonly result: object;
}

/** One step of the scenario. It throws if the service does not do what the step expects. */
export interface Step {
  readonly name: string;
  run(context: ScenarioContext): Promise<StepResult>;
}
