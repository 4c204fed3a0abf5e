import type { MarkedBlock } from '../changes/marked-block.js';
import { CliFailure, STATUS, usageFailure } from '../program/failure.js';

/** The name of the block, of the part and of its note. */
export const AWS_BLOCK = 'aws';

/** A profile of `~/.aws/config` that `svc setup aws` writes. */
export interface AwsProfile {
  readonly server: string;
  readonly role: string;
  readonly region?: string;
  readonly duration?: number;
  /** True for a role that the server listed: the profile goes when the role leaves the list. */
  readonly listed?: true;
}

/** The profiles of `svc setup aws` by their names, as `config.json` notes them. */
export type AwsNote = Readonly<Record<string, AwsProfile>>;

const PROFILE = /^[\w.@:+-]{1,64}$/;
/** The characters of a path that every shell and SDK reads alike between double quotes. */
const QUOTABLE = /^[^"'\\$`%!\r\n]+$/;

/**
 * Returns the name of a profile: the given one, otherwise that of the role.
 *
 * @throws CliFailure with status 2
 */
export function profileName(given: string | undefined, role: string): string {
  const name = given ?? role.slice(role.lastIndexOf('/') + 1);
  if (PROFILE.test(name)) return name;
  throw usageFailure('--profile must be 1 to 64 of A-Z a-z 0-9 _ . @ : + -', 'svc setup aws');
}

/** Returns the block of all profiles. */
export function profilesBlock(program: string, note: AwsNote): MarkedBlock {
  const lines = Object.entries(note).flatMap(([name, { server, role, region, duration }]) => [
    sectionOf(name),
    `credential_process = ${quoted(program)} aws credential-process --server ${server} --role ${quoted(role)}` +
      (duration === undefined ? '' : ` --duration ${duration}`) +
      (region === undefined ? '' : ` --region ${region}`),
    ...(region === undefined ? [] : [`region = ${region}`]),
  ]);
  return { name: AWS_BLOCK, lines, position: 'bottom' };
}

/**
 * Says whether a text outside the block has a profile of this name. Two sections of one name break
 * the file.
 */
export function hasProfile(text: string, name: string): boolean {
  const wanted = sectionOf(name);
  return text.split('\n').some((line) => line.trim().replaceAll(/\s+/g, ' ') === wanted);
}

function sectionOf(name: string): string {
  return name === 'default' ? '[default]' : `[profile ${name}]`;
}

function quoted(text: string): string {
  if (/^[\w./@:+=,-]+$/.test(text)) return text;
  if (QUOTABLE.test(text)) return `"${text}"`;
  const whatToDo = 'Install svc at another path, or write the profile by hand.';
  throw new CliFailure(`The AWS tools cannot run ${text}.`, whatToDo, STATUS.failed);
}
