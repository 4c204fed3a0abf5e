import { SoftwareKey } from '@svc/stand-ins/software-key';
import type { ConsoleOutput } from './console-output.js';
import { runSteps } from './scenario/run-steps.js';
import { newScenario, STEPS } from './scenario/scenario.js';

/**
 * A running service with which the demo works. The program that started the service makes this
 * object. The service must trust the attestation root of `vendor`.
 */
export interface RunningDemo {
  readonly baseUrl: string;
  readonly dataDir: string;
  /** The path of the `svc` command, a file that Node runs. */
  readonly command: string;
  /** A software key. Software keys that are made from it have the same attestation root. */
  readonly vendor: SoftwareKey;
  /**
   * The slug of the demo's own identity provider; undefined if the environment names other
   * providers.
   */
  readonly provider: string | undefined;
  /**
   * Prepares the tour of the pages.
   *
   * @returns the reason why this failed; undefined if it succeeded, and if the environment names
   *   other providers, with which there is no tour
   */
  prepareTour(): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * Runs the scenario as a new user, and prints it.
 *
 * @returns true if every step succeeded
 */
export async function runScenario(demo: RunningDemo, output: ConsoleOutput): Promise<boolean> {
  const context = newScenario({ ...demo, key: new SoftwareKey({ vendor: demo.vendor }) });
  let index = 0;
  const outcomes = await runSteps(STEPS, context, (outcome) => output.step(outcome, index++));
  output.report(outcomes, context);
  return outcomes.every(({ ok }) => ok);
}

/**
 * Prepares the tour, and prints the reason if that fails. Then prints the instructions for a
 * visitor, without those for the tour if there is none.
 */
export async function inviteVisitors(demo: RunningDemo, output: ConsoleOutput): Promise<void> {
  const problem = await demo.prepareTour();
  if (problem !== undefined) process.stderr.write(`${problem}\n`);
  output.serving(demo, { hasTour: problem === undefined && demo.provider !== undefined });
}
