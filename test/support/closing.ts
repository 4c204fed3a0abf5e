/** The milliseconds after which the end of a part of a test counts as stuck. */
const STUCK_AFTER = 60_000;

/**
 * Waits until a part of a test has closed. If that takes longer than a minute, prints the part and
 * what this process still has open, and goes on waiting. The time limit of vitest, which ends the
 * wait, names only the file.
 *
 * @param what the name of the part, for the printed lines
 * @param log returns the last lines of the part's own log, which are printed too
 */
export async function closing<Closed>(
  what: string,
  closed: Promise<Closed>,
  log: () => readonly string[] = () => [],
): Promise<Closed> {
  const stuck = setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(' ');
    console.error(`${what} does not close. Open: ${open}\n${log().join('\n')}`);
  }, STUCK_AFTER);
  try {
    return await closed;
  } finally {
    clearTimeout(stuck);
  }
}
