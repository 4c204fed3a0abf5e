/**
 * Runs an entry point. What keeps it from starting is printed on stderr, a line each, and ends the process with exit
 * status 1; the messages name variables and files, never a secret value.
 */
export async function runOrExit(start: () => Promise<void>): Promise<void> {
  try {
    await start();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}
