import { systemClock } from '@svc/stand-ins/clock';
import type { ScenarioContext, Step } from './step.js';

/** The outcome of one step, with the milliseconds that it took: its result, or its error. */
export type StepOutcome = { readonly name: string; readonly ms: number } & (
  | { readonly ok: true; readonly line: string; readonly result: object }
  | { readonly ok: false; readonly error: string }
);

/**
 * Runs the steps in order. Each step needs the results of earlier steps. So after a failure no
 * further step runs, and each of them gets the outcome that it was not tried.
 *
 * @param onOutcome receives the outcome of every step when it ends
 */
export async function runSteps(
  steps: readonly Step[],
  context: ScenarioContext,
  onOutcome: (outcome: StepOutcome) => void,
): Promise<StepOutcome[]> {
  const outcomes: StepOutcome[] = [];
  for (const step of steps) {
    const stopped = outcomes.some(({ ok }) => !ok);
    const outcome = stopped
      ? {
          name: step.name,
          ms: 0,
          ok: false as const,
          error: 'not tried, since a step before it failed',
        }
      : await runStep(step, context);
    outcomes.push(outcome);
    onOutcome(outcome);
  }
  return outcomes;
}

async function runStep(step: Step, context: ScenarioContext): Promise<StepOutcome> {
  const { name } = step;
  const start = systemClock.monotonic();
  const ms = () => Math.round(systemClock.monotonic() - start);
  try {
    const { line, result } = await step.run(context);
    return { name, ms: ms(), ok: true, line, result };
  } catch (error) {
    return { name, ms: ms(), ok: false, error: reasonOf(error) };
  }
}

/**
 * Returns the reason of an error. The cause is added if there is one, because the message of a
 * failed fetch is only `fetch failed`.
 */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
