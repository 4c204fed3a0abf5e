import { rmSync, statSync } from 'node:fs';
import type { PrivateFolder } from '../files/private-folder.js';
import { now } from '../program/clock.js';
import { CliFailure } from '../program/failure.js';
import { CHECK_NETWORK } from '../program/system-errors.js';
import { Unreachable } from './transport.js';

/**
 * The longest wait for an answer in milliseconds if another program, such as ssh, waits for the
 * command.
 */
export const TOOL_TIMEOUT = 3_000;
/**
 * The milliseconds for which a server that gave no answer gets no further request while another
 * program waits.
 */
const MEMORY = 60_000;
/** The file in the folder of a server that records the time at which it gave no answer. */
const FILE = 'no-answer';

/**
 * Sends a request to a server while another program, such as ssh, waits for the command, and must
 * not wait for long. If the server gives no answer in time, it is not asked again for a minute, so
 * that the next `ssh` does not wait.
 *
 * @param act sends the request, and waits for at most the given milliseconds
 * @throws CliFailure if the server gave no answer, now or in the last minute
 */
export async function askForTool<Answer>(
  server: string,
  folder: PrivateFolder,
  act: (timeout: number) => Promise<Answer>,
): Promise<Answer> {
  const age = ageOfSilence(folder);
  if (age !== undefined) {
    const [ago, left] = [age, MEMORY - age].map(inSeconds);
    const message = `${new URL(server).host} gave no answer ${ago} ago, and is asked again in ${left}.`;
    throw new CliFailure(message, CHECK_NETWORK);
  }
  try {
    return await act(TOOL_TIMEOUT);
  } catch (error) {
    if (error instanceof Unreachable && error.isTimeout) folder.write(FILE, '');
    throw error;
  }
}

/** Forgets that a server gave no answer, because it has just given one. */
export function forgetSilence(folder: PrivateFolder): void {
  try {
    rmSync(folder.file(FILE), { force: true });
  } catch {
    // In a folder that cannot be written the record stays. It counts for one minute only.
  }
}

function inSeconds(milliseconds: number): string {
  const count = Math.ceil(milliseconds / 1000);
  return `${count} second${count === 1 ? '' : 's'}`;
}

function ageOfSilence(folder: PrivateFolder): number | undefined {
  const time = statSync(folder.file(FILE), { throwIfNoEntry: false })?.mtimeMs;
  const age = time === undefined ? MEMORY : now() - time;
  return age >= 0 && age < MEMORY ? age : undefined;
}
