/**
 * Runs an entry point. A failed start prints its reason on stderr, one line for each problem, and
 * ends the process with status 1. The messages name variables and files, never a secret value.
 */
export async function runOrExit(start: () => Promise<void>): Promise<void> {
  try {
    await start();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}
