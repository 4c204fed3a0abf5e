import type { PrivateFolder } from '../files/private-folder.js';
import type { Terminal } from '../terminal/terminal.js';

/** The header in which the server names the newest notice that the user has not read. */
export const NOTICE_HEADER = 'svc-notice';

/** The file with the id of the newest notice that the command has printed. */
const FILE = 'notice.json';

/** The words for each type of notice. */
const WORDS: Readonly<Record<string, string>> = {
  key_registered: 'a security key was added to your account',
  key_removed: 'a security key was removed from your account',
  enrollment_pass_created: 'a pass to enroll a key was given for your account',
  admin_promote: 'a member was made an admin',
  api_token_created: 'an API token was made',
  api_token_rotated: 'a successor of an API token was made',
  scim_token_created: 'a SCIM token was made',
  event_receiver_created: 'an event receiver was made, which gets the audit log',
  event_receiver_updated: 'an event receiver was changed or paused',
  event_receiver_deleted: 'an event receiver was removed',
  event_receiver_secret_rotated: 'the secret of an event receiver was replaced',
};

/**
 * The server of a command, the folder of its files, and the terminal on which notices are printed.
 */
export interface NoticeParts {
  readonly server: string;
  readonly folder: PrivateFolder;
  readonly terminal: Terminal;
}

/**
 * Prints the notice of an answer in one line on standard error, each notice once. The line says
 * where the person reads it. If the file about printed notices cannot be used, the command goes on.
 *
 * @param header the value of the header, a dictionary of RFC 9651
 */
export function tellOfNotice(header: string, { server, folder, terminal }: NoticeParts): void {
  const { type, id } = noticeOf(header) ?? {};
  if (type === undefined || id === undefined) return;
  try {
    const { shown } = Object(folder.readJson(FILE)) as { readonly shown?: unknown };
    if (shown === id) return;
    folder.writeJson(FILE, { shown: id });
  } catch {
    // The file cannot be used, so the line is printed now, and by later commands again.
  }
  const words = WORDS[type] ?? 'your account or your organization changed';
  terminal.warn(`svc: Notice: ${words}. Read it at ${server}/account`);
}

/** Reads the type and the id of a notice; undefined for any other text. */
function noticeOf(header: string): { readonly type: string; readonly id: string } | undefined {
  const [, type, id] = /^type=([a-z_]{1,64}), id="([0-9a-f-]{36})"$/.exec(header) ?? [];
  return type === undefined || id === undefined ? undefined : { type, id };
}
