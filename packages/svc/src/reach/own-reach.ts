import type { CommandContext } from '../command/command-context.js';
import { setupNote } from '../files/config-file.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { ServerRefusal } from '../server/server-client.js';
import { readToken } from '../server/stored-token.js';

/** A group of hosts that admits the user. */
export interface ListedHosts {
  readonly name: string;
  /**
   * The patterns of host names, as the server sent them. `svc setup ssh` checks them by the same
   * rules as its option `--host`.
   */
  readonly hosts: readonly string[];
  readonly logins: readonly string[];
}

/**
 * A role of AWS that admits the user. `svc setup aws` checks it by the same rules as its options.
 */
export interface ListedRole {
  readonly name: string;
  readonly role_arn: string;
  readonly region: string | null;
}

/**
 * A Kubernetes cluster that admits the user. `svc setup kubectl` checks it by the same rules as its
 * options.
 */
export interface ListedCluster {
  readonly name: string;
  readonly resource: string;
}

/**
 * The targets that the server lists for the user: groups of hosts, AWS roles, Kubernetes clusters
 * and owners at GitHub. `changedAt` is the time of the last change of the list.
 */
export interface ListedReach {
  readonly ssh: readonly ListedHosts[];
  readonly aws: readonly ListedRole[];
  readonly kubernetes: readonly ListedCluster[];
  readonly github: readonly { readonly owner: string }[];
  readonly changedAt: string;
}

/** The name under which `config.json` records the time of the last list of targets. */
export const REACH_NOTE = 'access';

/**
 * For each server, by its URL: the `changed_at` time of the list of targets that the last `svc
 * setup` without named parts used. At a later login another time means that the list has changed,
 * and `svc` advises the user to run `svc setup` again.
 */
export type ReachNote = Readonly<Record<string, string>>;

/** The largest number of entries in a list of targets, and of characters in a text of it. */
const MOST = { entries: 1000, characters: 2048 } as const;
const GROUP = /^[a-z][a-z0-9-]{0,31}$/;
const LOGIN = /^[a-z_][a-z0-9_-]{0,31}$/;
const OWNER = /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?$/;
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]{8,16}Z$/;

/**
 * Asks the server for the targets that admit the user: hosts, roles, clusters and owners at GitHub.
 *
 * @returns the targets; undefined without a login, and for a server of an earlier version, which
 *   has no such list
 * @throws CliFailure if the server cannot be asked, and for an answer of another form
 */
export async function listedReach(context: CommandContext): Promise<ListedReach | undefined> {
  if (!readToken(context.folder(), 'token')) return undefined;
  const client = await context.client();
  try {
    return readReach(await client.get('/v1/setup'), context.server());
  } catch (error) {
    if (error instanceof ServerRefusal && error.httpStatus === 404) return undefined;
    throw error;
  }
}

/**
 * The failure if the server's answer is no list of targets. Nothing of the answer is used, because
 * it would be written into configurations of other programs.
 */
export class HostileList extends CliFailure {
  constructor(server: string, what: string) {
    const { host } = new URL(server);
    const whatToDo = 'Nothing was changed. Tell an admin of your organization.';
    super(`${host} lists ${what}.`, whatToDo, STATUS.failed);
  }
}

/** Returns what `svc setup` has recorded about the lists of targets: the time of each. */
export function reachNote(context: CommandContext): ReachNote {
  return (setupNote(context.config(), REACH_NOTE) ?? {}) as ReachNote;
}

/** Returns the URL of the page on which a user sees the targets that admit the user. */
export function reachPage(server: string): string {
  return `${server}/account/reach`;
}

/**
 * Parses the server's list of targets.
 *
 * @throws HostileList for an answer of another form
 */
function readReach(answer: unknown, server: string): ListedReach {
  const document = Object(answer) as Readonly<Record<string, unknown>>;
  const wrong = (what: string) => new HostileList(server, what);
  const listOf = (name: string): Readonly<Record<string, unknown>>[] => {
    const list = document[name];
    if (!Array.isArray(list) || list.length > MOST.entries) throw wrong(`no ${name}`);
    return list.map((entry) => Object(entry) as Record<string, unknown>);
  };
  const text = (value: unknown, what: string, form = /^\P{Cc}+$/u): string => {
    const isText = typeof value === 'string' && value.length <= MOST.characters;
    if (isText && form.test(value)) return value;
    throw wrong(`${what} of another form: ${JSON.stringify(value)?.slice(0, 80)}`);
  };
  const texts = (value: unknown, what: string, form?: RegExp): string[] => {
    if (!Array.isArray(value) || value.length > MOST.entries) throw wrong(`no ${what}`);
    return value.map((one) => text(one, what, form));
  };
  return {
    ssh: listOf('ssh').map(({ name, hosts, logins }) => ({
      name: text(name, 'a group of hosts', GROUP),
      hosts: texts(hosts, 'a pattern of hosts'),
      logins: texts(logins, 'a login', LOGIN),
    })),
    aws: listOf('aws').map(({ name, role_arn: role, region }) => ({
      name: text(name, 'a name of a role'),
      role_arn: text(role, 'a role'),
      region: region === null ? null : text(region, 'a region'),
    })),
    kubernetes: listOf('kubernetes').map(({ name, resource }) => ({
      name: text(name, 'a name of a cluster'),
      resource: text(resource, 'a resource'),
    })),
    github: listOf('github').map(({ owner }) => ({ owner: text(owner, 'an owner', OWNER) })),
    changedAt: text(document['changed_at'], 'a time', TIME),
  };
}
