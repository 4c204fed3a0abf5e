import type { RunningDemo } from './serve.js';
import type { StepOutcome } from './scenario/run-steps.js';
import type { WalkContext } from './scenario/scenario.js';

/** The demo as something that is told, while it happens or when it is done. */
export interface Voice {
  begin(): void;
  step(outcome: StepOutcome, index: number): void;
  /** After the walk. */
  report(outcomes: readonly StepOutcome[], context: WalkContext): void;
  /** When it goes on serving. */
  serving(demo: Pick<RunningDemo, 'baseUrl' | 'dataDir' | 'provider'>): void;
}

const HERE =
  'Sign in, and continue with the demo identity provider. It believes any address: take you@example.com.';
const ELSEWHERE = 'Sign in with an identity provider of the environment (SVC_IDPS).';

const say = (text: string) => void process.stdout.write(text);

/** For people: every step as it ends, then what they can do themselves. */
export const PROSE: Voice = {
  begin: () =>
    say(
      'The svc demo: the service, its database, an identity provider and a software security key, all on this machine.\n\n',
    ),
  step: (outcome, index) => {
    const told = outcome.ok ? outcome.line : outcome.error;
    say(`${outcome.ok ? 'ok' : 'FAILED'}  ${index + 1}. ${outcome.name} — ${told}\n`);
  },
  report: (outcomes) => {
    const held = outcomes.filter(({ ok }) => ok).length;
    say(`\n${held} of ${outcomes.length} steps held.\n`);
  },
  serving: ({ baseUrl, dataDir, provider }) =>
    say(`
Now walk the same way in a browser:

  ${baseUrl}

  1. ${provider === undefined ? ELSEWHERE : HERE}
  2. Enroll this key. The demo’s software key answers; untick it above the page to use a real FIDO2 key.
  3. Log out, then log in again with the key alone.

The data is kept in ${dataDir}. Ctrl-C ends the demo.
`),
};

/** For programs: one JSON document when the walk is done. */
export const JSON_DOCUMENT: Voice = {
  begin: () => undefined,
  step: () => undefined,
  report: (outcomes, { walker, ssh }) => {
    const steps = outcomes.map((outcome) =>
      outcome.ok
        ? { name: outcome.name, ok: true, result: outcome.result, ms: outcome.ms }
        : { name: outcome.name, ok: false, error: outcome.error, ms: outcome.ms },
    );
    const ok = outcomes.every((outcome) => outcome.ok);
    say(`${JSON.stringify({ ok, base_url: walker.baseUrl, steps, ssh: ssh ?? null }, null, 2)}\n`);
  },
  serving: () => undefined,
};
