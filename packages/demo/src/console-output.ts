import type { ScenarioContext } from './scenario/step.js';
import type { StepOutcome } from './scenario/run-steps.js';

/** Prints the progress or the results of the demo to standard output. */
export interface ConsoleOutput {
  begin(): void;
  step(outcome: StepOutcome, index: number): void;
  /** Prints the results after the last step. */
  report(outcomes: readonly StepOutcome[], context: ScenarioContext): void;
  /** Prints instructions while the demo keeps serving, also for the tour if there is one. */
  serving(
    demo: { readonly baseUrl: string; readonly dataDir: string },
    options: { readonly hasTour: boolean },
  ): void;
}

const print = (text: string) => void process.stdout.write(text);

/** Prints every step when it ends, and finally instructions for the browser. */
export const TEXT_OUTPUT: ConsoleOutput = {
  begin: () =>
    print(
      'The svc demo: the service, its database, an identity provider and a software security key, all on this machine.\n\n',
    ),
  step: (outcome, index) => {
    const detail = outcome.ok ? outcome.line : outcome.error;
    print(`${outcome.ok ? 'ok' : 'FAILED'}  ${index + 1}. ${outcome.name} — ${detail}\n`);
  },
  report: (outcomes) => {
    const succeeded = outcomes.filter(({ ok }) => ok).length;
    print(`\n${succeeded} of ${outcomes.length} steps succeeded.\n`);
  },
  serving: ({ baseUrl, dataDir }, { hasTour }) =>
    print(`
${hasTour ? tourOf(baseUrl) : 'Now open the service in a browser:'}

  ${baseUrl}

The demo’s software key answers for the touch; untick it above a page to use a real FIDO2 key.
The data is kept in ${dataDir}. Ctrl-C ends the demo.
`),
};

function tourOf(baseUrl: string): string {
  return `Now take the tour in a browser, as an engineer, an admin or an operator:

  ${baseUrl}/demo

or open the service itself, without a guide:`;
}

/** Prints one JSON document after the last step. */
export const JSON_OUTPUT: ConsoleOutput = {
  begin: () => undefined,
  step: () => undefined,
  report: (outcomes, { client, ssh }) => {
    const steps = outcomes.map((outcome) =>
      outcome.ok
        ? { name: outcome.name, ok: true, result: outcome.result, ms: outcome.ms }
        : { name: outcome.name, ok: false, error: outcome.error, ms: outcome.ms },
    );
    const ok = outcomes.every((outcome) => outcome.ok);
    print(
      `${JSON.stringify({ ok, base_url: client.baseUrl, steps, ssh: ssh ?? null }, null, 2)}\n`,
    );
  },
  serving: () => undefined,
};
