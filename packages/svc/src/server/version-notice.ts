import type { PrivateFolder } from '../files/private-folder.js';
import { now } from '../program/clock.js';
import { isFarAhead, version } from '../program/version.js';
import type { Terminal } from '../terminal/terminal.js';

/** The header in which the server tells the command its version. */
export const VERSION_HEADER = 'svc-version';

/** The file with the time of the last line about a newer server. */
const FILE = 'version-notice.json';

/** The milliseconds between two lines about a newer server. */
const DAY = 86_400_000;

/**
 * Prints a line on standard error, once a day, if the server is at least two minor versions ahead
 * of the command. If the file with the last time cannot be used, the command prints nothing and
 * goes on.
 *
 * @param header the version of the server, as it states it
 */
export function tellOfVersion(
  header: string,
  { folder, terminal }: { readonly folder: PrivateFolder; readonly terminal: Terminal },
): void {
  const own = version();
  if (!isFarAhead(header, own)) return;
  try {
    const { told_at: toldAt } = Object(folder.readJson(FILE)) as { readonly told_at?: unknown };
    const age = typeof toldAt === 'number' ? now() - toldAt : DAY;
    if (age >= 0 && age < DAY) return;
    folder.writeJson(FILE, { told_at: now() });
  } catch {
    return; // A line with every command would be too many.
  }
  terminal.warn(`svc: The server is svc ${header}, and this command is ${own}. Run: svc update`);
}
