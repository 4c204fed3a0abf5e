import type { SoftwareKey } from '@svc/stand-ins/software-key';
import type { DemoApplication } from '../application/application.js';
import type { HttpClient } from './http-client.js';
import type { LocalSshd } from './ssh/local-sshd.js';

/** The input of every step, and the results that later steps need. */
export interface ScenarioContext {
  readonly client: HttpClient;
  /** New in each run, with a new domain: the first user of an organization is its admin. */
  readonly email: string;
  /** The software key of this user. */
  readonly key: SoftwareKey;
  /**
   * The slug of the demo's own identity provider; undefined if the environment names other
   * providers.
   */
  readonly provider: string | undefined;
  ssh?: SshCredential;
  colleague?: Colleague;
}

/** A certificate as the service returns it, as far as a later step reads it. */
export interface SshCredential {
  readonly certificate: string;
  readonly serial: string;
  readonly ca_public_key: string;
}

/** A user that the identity provider provisioned, with an own browser and certificate. */
export interface Colleague {
  readonly id: string;
  readonly email: string;
  readonly client: HttpClient;
  readonly serial: string;
  /** A server that accepts the certificate; undefined on a machine without OpenSSH. */
  readonly sshd: LocalSshd | undefined;
  /** The application that keeps a session of its own for the colleague. */
  readonly application: DemoApplication;
  /** The token of the identity provider. */
  readonly scimToken: string;
}

/** A step's result: a line for readers, and its facts for programs. */
export interface StepResult {
  readonly line: string;
  readonly result: object;
}

/** One step of the scenario. It throws when the service does not do what the step expects. */
export interface Step {
  readonly name: string;
  run(context: ScenarioContext): Promise<StepResult>;
}
