import type { CommandContext } from '../command/command-context.js';
import { patience } from '../program/clock.js';
import { listedReach, reachNote, type ListedReach } from './own-reach.js';

/** A login waits this many milliseconds for the list. */
const PATIENCE = 3_000;

/**
 * Returns the line for a user whose list changed since the last `svc setup`, or who has a list and
 * no setup. A server that does not answer holds up no login: there is no line then.
 */
export async function lineOfChangedReach(context: CommandContext): Promise<string | undefined> {
  try {
    const reach = await Promise.race([listedReach(context), patience(PATIENCE)]);
    return reach ? lineFor(context, reach) : undefined;
  } catch {
    return undefined;
  }
}

function lineFor(context: CommandContext, reach: ListedReach): string | undefined {
  const noted = reachNote(context)[context.server()];
  if (noted !== undefined) {
    return noted === reach.changedAt ? undefined : 'Your access changed: run svc setup.';
  }
  const { ssh, aws, kubernetes, github } = reach;
  if (ssh.length + aws.length + kubernetes.length + github.length === 0) return undefined;
  const hasSetup = Object.keys(context.config().setup ?? {}).length > 0;
  return hasSetup ? 'Your access changed: run svc setup.' : 'Next: svc setup';
}
