import { WrongArguments } from '@svc/arguments';
import { readArguments, USAGE, type DemoArguments } from '@svc/demo/arguments';
import { runOrExit } from '../start.js';

/**
 * Starts the demo (`npm run demo`), runs the scenario and prints the results. Without `--exit` it
 * then serves until a signal ends it. The exit status is 0 only if every step succeeded, also after
 * a signal.
 *
 * A wrong argument or environment is refused before the application is loaded, because loading
 * takes a second.
 */
export async function startDemo(argv: readonly string[]): Promise<void> {
  const options = argumentsOrExit(argv);
  if (options.help) {
    process.stdout.write(USAGE);
    return;
  }
  let succeeded = false;
  process.once('exit', () => {
    if (!succeeded) process.exitCode ||= 1; // after a signal the process would end with 0
  });
  await runOrExit(async () => {
    const { JSON_OUTPUT, TEXT_OUTPUT } = await import('@svc/demo/console-output');
    const output = options.json ? JSON_OUTPUT : TEXT_OUTPUT;
    output.begin();
    const { checkStart } = await import('./start-checks.js');
    const facts = await checkStart(options);
    const { serveDemo } = await import('./serve.js');
    const demo = await serveDemo(facts);
    const { inviteVisitors, runScenario } = await import('@svc/demo/running-demo');
    succeeded = await runScenario(demo, output);
    if (options.exit) await demo.close();
    else await inviteVisitors(demo, output);
  });
}

function argumentsOrExit(argv: readonly string[]): DemoArguments {
  try {
    return readArguments(argv);
  } catch (error) {
    if (!(error instanceof WrongArguments)) throw error;
    process.stderr.write(`${error.message}\n\n${USAGE}`);
    return process.exit(2);
  }
}
