import { sortArguments, WrongArguments } from '@svc/arguments';
import type { AuditClass } from '#domain/audit/audit-event.js';
import type { ArchiveCommand, NamedObject } from './archive/archive.js';
import type { InitCommand } from './init/init.js';
import type { SealedExportCommand } from './archive/sealed-export.js';

/**
 * The commands that change the account of a person. Each takes the e-mail address of the person.
 */
export const ACTS = ['make-admin', 'revoke-everything', 'give-pass'] as const;

/** One of {@link ACTS}. */
export type ActName = (typeof ACTS)[number];

/** The actions of the command `domains` that change something. Each takes a domain. */
export const DOMAIN_ACTS = ['release', 'assign'] as const;

/**
 * The parsed command `domains release` or `domains assign`, which changes the owner of an e-mail
 * domain.
 */
export interface DomainCommand {
  readonly name: 'domains';
  readonly act: (typeof DOMAIN_ACTS)[number];
  readonly domain: string;
  readonly json: boolean;
  /** The organization that gets the domain; undefined for a release. */
  readonly org: string | undefined;
  /** True if the command line has `--yes`, so that no question is asked. */
  readonly yes: boolean;
}

/** The parsed command line. */
export type GlassCommand =
  | { readonly name: 'help' }
  | { readonly name: 'check'; readonly json: boolean }
  | { readonly name: 'list-admins'; readonly json: boolean; readonly org: string | undefined }
  | {
      readonly name: 'domains';
      readonly act: 'list';
      readonly json: boolean;
      readonly org: string | undefined;
    }
  | DomainCommand
  | ArchiveCommand
  | SealedExportCommand
  | InitCommand
  | {
      readonly name: 'reconcile';
      readonly json: boolean;
      /**
       * The file with checkpoints (signed sizes and hashes) that the audit log published, by which
       * lost events are found; undefined without the option.
       */
      readonly checkpoints: string | undefined;
      /** True if the command line has `--yes`, so that no question is asked. */
      readonly yes: boolean;
    }
  | {
      readonly name: ActName;
      readonly address: string;
      readonly json: boolean;
      readonly org: string | undefined;
      /** True if the command line has `--yes`, so that no question is asked. */
      readonly yes: boolean;
    };

/** The text of `--help`. */
export const USAGE = `Usage: node dist/admin.js COMMAND [ARGUMENT]... [OPTION]...

Break-glass for the operator of the service. It uses the service's own configuration
and database, and works while the service runs and while it is down.

Commands:
  init                        Asks for the settings of a new service, checks each at once, and writes
                              its file of variables.
  list-admins                 Lists the admins of every organization.
  make-admin ADDRESS          Makes an active user an admin of the user's organization.
  revoke-everything ADDRESS   Ends the keys, sessions, certificates, tokens and pass of a person.
  give-pass ADDRESS           Does the same, and prints a pass to enroll another key: once, for 24 hours.
  domains                     Lists the domains of every organization, and how each is proven.
  domains release DOMAIN      Takes a domain from its organization. What stood on it ends.
  domains assign DOMAIN       Gives a domain to the organization of --org: proven, and never checked.
  reconcile                   Ends all access on record, as after a loss of commits: all sessions, tokens and
                              certificates. The next login of each person needs the provider and the key.
  archive                     Copies a month of the audit log as NDJSON, and reads the copy back.
  sealed-export               Writes what the checkpoints of the deployment seal: events without an
                              organization, and the checkpoints of organizations.
  check                       Checks configuration, database, keys, providers and clocks.

Options:
  --org ORGANIZATION   The organization, by its id or one of its verified domains; none for a
                       person without an organization.
  --checkpoints FILE   With reconcile: published checkpoints of the audit log. It names the sealed
                       events that the database lost.
  --class CLASS        For archive: auth, oauth or admin.
  --month YYYY-MM      For archive: a month that is over, in UTC.
  --to PLACE           For archive: a file, or s3://BUCKET/KEY. A copy that was interrupted goes on
                       where it ended. For sealed-export: a new file.
  --file FILE          For init: the file to write (/etc/svc-server/svc-server.env), for its owner alone.
  --answers FILE       For init: variables that answer the questions, so that none is asked.
                       --answers=- reads them from standard input.
  --yes                Confirms a change, for scripts. Without it the command asks for the address,
                       the domain, or the word reconcile. For init: replaces FILE; its root secret stays.
  --json               Prints one JSON document.
  --help               Prints this text.

Each change is one row of the audit log and one line of the log target "security", with the name and
the uid of the operating-system user, the uid of the login, SUDO_USER as a claim, and the host name.

Exit status: 0 done or healthy; 1 failed, refused or unhealthy; 2 wrong usage.
`;

const NAMES = {
  flags: ['yes', 'json', 'help'],
  values: ['org', 'checkpoints', 'class', 'month', 'to', 'file', 'answers'],
  letters: { h: 'help' },
  refusesDashes: true,
  positionals: Infinity, // each command itself checks how many it got
};

/**
 * Parses the command line of this program into a command with its options.
 *
 * @throws WrongArguments if the command line is not a valid command
 */
export function readCommand(args: readonly string[]): GlassCommand {
  const { positionals, has, value } = sortArguments(args, NAMES);
  if (has('help')) return { name: 'help' };
  const [name] = positionals;
  if (name === 'init') return initCommand(positionals, { has, value });
  if (value('file') !== undefined || value('answers') !== undefined) {
    throw new WrongArguments('--file and --answers are for init.');
  }
  return readOther(positionals, { has, value });
}

/** The functions that read the options of the command line. */
type Options = Pick<ReturnType<typeof sortArguments>, 'has' | 'value'>;

/**
 * Checks the arguments of the command `init`.
 * @throws WrongArguments
 */
function initCommand([, ...rest]: readonly string[], { has, value }: Options): InitCommand {
  if (rest.length > 0) throw new WrongArguments('init takes no argument.');
  const foreign = ['org', 'checkpoints', 'class', 'month', 'to'].find(
    (one) => value(one) !== undefined,
  );
  if (foreign !== undefined || has('json')) {
    throw new WrongArguments(`--${foreign ?? 'json'} has no effect on init.`);
  }
  const file = value('file') ?? '/etc/svc-server/svc-server.env';
  return { name: 'init', file, answers: value('answers'), yes: has('yes') };
}

/**
 * Parses the command line of every command but `init`.
 * @throws WrongArguments
 */
function readOther(positionals: readonly string[], { has, value }: Options): GlassCommand {
  const [name, address, ...rest] = positionals;
  const [json, yes, org] = [has('json'), has('yes'), value('org')];
  const checkpoints = value('checkpoints');
  if (name === undefined) throw new WrongArguments('A command is missing.');
  if (checkpoints !== undefined && name !== 'reconcile') {
    throw new WrongArguments('--checkpoints is an option of reconcile alone.');
  }
  const month = { class: value('class'), month: value('month'), to: value('to') };
  if (name === 'archive' || name === 'sealed-export') {
    if (address !== undefined) throw new WrongArguments(`${name} takes no argument.`);
    if (yes || org !== undefined) {
      throw new WrongArguments(`${name} copies all of it: --org and --yes have no effect.`);
    }
    return { ...(name === 'archive' ? archiveCommand(month) : sealedCommand(month)), json };
  }
  if (Object.values(month).some((one) => one !== undefined)) {
    throw new WrongArguments(
      '--class and --month are for archive, and --to for archive and sealed-export.',
    );
  }
  if (name === 'domains') return domainsCommand(positionals.slice(1), { json, org, yes });
  const act = ACTS.find((one) => one === name);
  if (act) {
    if (address === undefined) throw new WrongArguments(`${name} needs the address of a person.`);
    if (rest.length > 0) throw new WrongArguments(`${name} takes one address.`);
    return { name: act, address, json, org: org?.toLowerCase(), yes };
  }
  if (name === 'reconcile') {
    if (address !== undefined) throw new WrongArguments('reconcile takes no address.');
    if (org !== undefined) {
      throw new WrongArguments(
        'reconcile ends the access of all organizations: --org has no effect.',
      );
    }
    return { name, json, yes, checkpoints };
  }
  if (name !== 'list-admins' && name !== 'check')
    throw new WrongArguments(`No such command: ${name}`);
  if (address !== undefined) throw new WrongArguments(`${name} takes no address.`);
  if (yes) throw new WrongArguments(`${name} changes nothing: --yes has no effect.`);
  if (name === 'list-admins') return { name, json, org: org?.toLowerCase() };
  if (org !== undefined)
    throw new WrongArguments('check looks at the whole service: --org has no effect.');
  return { name, json };
}

const CLASSES: readonly AuditClass[] = ['auth', 'oauth', 'admin'];

/**
 * Checks the options of the command `archive`.
 * @throws WrongArguments
 */
function archiveCommand(given: {
  readonly class: string | undefined;
  readonly month: string | undefined;
  readonly to: string | undefined;
}): Omit<ArchiveCommand, 'json'> {
  const { month, to } = given;
  const ofClass = CLASSES.find((one) => one === given.class);
  if (!ofClass) throw new WrongArguments('archive needs --class: auth, oauth or admin.');
  if (month === undefined || !/^20\d\d-(?:0[1-9]|1[0-2])$/.test(month)) {
    throw new WrongArguments('archive needs --month, such as 2026-01.');
  }
  return { name: 'archive', class: ofClass, month, to: placeOf(to) };
}

/**
 * Checks the options of the command `sealed-export`.
 * @throws WrongArguments
 */
function sealedCommand({
  to,
  ...others
}: Readonly<Record<'class' | 'month' | 'to', string | undefined>>): Omit<
  SealedExportCommand,
  'json'
> {
  if (Object.values(others).some((one) => one !== undefined)) {
    throw new WrongArguments('--class and --month are for archive.');
  }
  if (!to) throw new WrongArguments('sealed-export needs --to: a new file.');
  return { name: 'sealed-export', to };
}

/**
 * Parses the option `--to` of the command `archive`: the path of a file, or `s3://BUCKET/KEY`.
 * @throws WrongArguments
 */
function placeOf(to: string | undefined): string | NamedObject {
  const place = 'a file, or s3://BUCKET/KEY';
  if (to === undefined || to === '') throw new WrongArguments(`archive needs --to: ${place}.`);
  if (!to.startsWith('s3:')) return to;
  const [, bucket = '', key = ''] =
    /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])\/(.{1,1000})$/.exec(to) ?? [];
  if (bucket === '') throw new WrongArguments(`--to must be ${place}.`);
  return { bucket, key };
}

/**
 * Parses the arguments of the command `domains`.
 * @throws WrongArguments
 */
function domainsCommand(
  [named = 'list', domain, ...rest]: readonly string[],
  { json, org: asked, yes }: { json: boolean; org: string | undefined; yes: boolean },
): GlassCommand {
  const org = asked?.toLowerCase();
  if (named === 'list') {
    if (domain !== undefined) throw new WrongArguments('domains list takes no domain: use --org.');
    if (yes) throw new WrongArguments('domains list changes nothing: --yes has no effect.');
    return { name: 'domains', act: 'list', json, org };
  }
  const act = DOMAIN_ACTS.find((one) => one === named);
  if (!act) throw new WrongArguments(`No such command: domains ${named}`);
  if (domain === undefined) throw new WrongArguments(`domains ${act} needs a domain.`);
  if (rest.length > 0) throw new WrongArguments(`domains ${act} takes one domain.`);
  if (act === 'assign' && org === undefined) {
    throw new WrongArguments('domains assign needs --org: the organization that gets the domain.');
  }
  if (act === 'release' && org !== undefined) {
    throw new WrongArguments(
      'domains release takes the domain from its owner: --org has no effect.',
    );
  }
  return { name: 'domains', act, domain, json, org, yes };
}
