import type { Step, WalkContext } from './scenario.js';

/** How a step ended. */
export type StepOutcome = { readonly name: string; readonly ms: number } & (
  | { readonly ok: true; readonly line: string; readonly result: object }
  | { readonly ok: false; readonly error: string }
);

/**
 * Takes the steps one after the other. Each builds on those before it: after the first that does not hold, the others
 * are not tried.
 *
 * @param onOutcome hears of every step as it ends
 */
export async function takeSteps(
  steps: readonly Step[],
  context: WalkContext,
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
      : await take(step, context);
    outcomes.push(outcome);
    onOutcome(outcome);
  }
  return outcomes;
}

async function take(step: Step, context: WalkContext): Promise<StepOutcome> {
  const { name } = step;
  const begun = performance.now();
  const ms = () => Math.round(performance.now() - begun);
  try {
    const { line, result } = await step.run(context);
    return { name, ms: ms(), ok: true, line, result };
  } catch (error) {
    return { name, ms: ms(), ok: false, error: reasonOf(error) };
  }
}

/** `fetch failed` alone says nothing: the reason is its cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
