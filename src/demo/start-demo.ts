import { runOrExit } from '../start.js';
import { readArguments, USAGE, UsageError, type DemoArguments } from './arguments.js';
import { serveDemo } from './serve.js';
import { SoftwareKey } from './software-key/software-key.js';
import { JSON_DOCUMENT, PROSE } from './console-output.js';
import { takeSteps } from './scenario/run-steps.js';
import { newWalk, STEPS } from './scenario/scenario.js';

/**
 * `npm run demo`: serves, walks, tells, and goes on serving until it is told to end. The exit status is 0 only if every
 * step held, however the process ends.
 */
export async function startDemo(argv: readonly string[]): Promise<void> {
  const options = argumentsOrExit(argv);
  if (options.help) {
    process.stdout.write(USAGE);
    return;
  }
  let held = false;
  process.once('exit', () => {
    if (!held) process.exitCode ||= 1; // a signal ends the application with 0
  });
  await runOrExit(async () => {
    const voice = options.json ? JSON_DOCUMENT : PROSE;
    voice.begin();
    const demo = await serveDemo(options);
    const key = new SoftwareKey({ vendor: demo.vendor });
    const context = newWalk(demo.baseUrl, key, demo.provider);
    let index = 0;
    const outcomes = await takeSteps(STEPS, context, (outcome) => voice.step(outcome, index++));
    voice.report(outcomes, context);
    held = outcomes.every(({ ok }) => ok);
    if (options.exit) await demo.close();
    else voice.serving(demo);
  });
}

function argumentsOrExit(argv: readonly string[]): DemoArguments {
  try {
    return readArguments(argv);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n\n${USAGE}`);
    return process.exit(2);
  }
}
