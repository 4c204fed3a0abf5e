import type { CommandContext } from '../command/command-context.js';
import { patience } from '../program/clock.js';
import { listedReach, reachNote, type ListedReach } from './own-reach.js';

/** The largest number of milliseconds for which a login waits for the list of targets. */
const PATIENCE = 3_000;

/**
 * Returns a line that advises the user to run `svc setup`, if there was no setup yet, or if the
 * list of targets has changed since. (Targets are hosts, roles and clusters.) Returns undefined if
 * there is nothing to say. It is also undefined if the server does not answer in time, so that a
 * login is hardly delayed.
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
