import type { SectionFormat } from '../changes/kept-lines.js';
import type { MarkedBlock } from '../changes/marked-block.js';
import { CliFailure, STATUS, usageFailure } from '../program/failure.js';

/**
 * The name of three things: the command's block in `~/.aws/config`, the part of `svc setup`, and
 * its entry in `config.json`.
 */
export const AWS_BLOCK = 'aws';

/** A profile of `~/.aws/config` that `svc setup aws` writes. */
export interface AwsProfile {
  readonly server: string;
  readonly role: string;
  readonly region?: string;
  readonly duration?: number;
  /**
   * True for a role from the server's list. The profile is removed when the server does not list
   * the role any more.
   */
  readonly listed?: true;
}

/** The profiles that `svc setup aws` has written, by their names, as `config.json` records them. */
export type AwsNote = Readonly<Record<string, AwsProfile>>;

/**
 * The format of the block. `aws configure set output json` adds a line of the user to a profile in
 * the block. A line `region` is also the user's if the command wrote no region into the profile.
 */
export const AWS_SECTIONS: SectionFormat = { keys: ['credential_process'], outlivesBlock: false };

const PROFILE = /^[\w.@:+-]{1,64}$/;
/**
 * Matches a path that may stand between double quotes: its characters mean the same to every shell
 * and SDK.
 */
const QUOTABLE = /^[^"'\\$`%!\r\n]+$/;

/**
 * Matches a path that may stand between double quotes on Windows, with backslashes between folders.
 * A backslash at the end would escape the closing quote. `cmd.exe`, by which some SDKs run the
 * program, would expand % and !.
 */
const QUOTABLE_ON_WINDOWS = /^[\w .@:+=,()\\/~-]*[^\\"'$`%!&|<>^\r\n]$/;

/**
 * Returns the name of a profile: the given name, or else the name of the role.
 * @throws CliFailure with status 2 for a name with characters that are not allowed
 */
export function profileName(given: string | undefined, role: string): string {
  const name = given ?? role.slice(role.lastIndexOf('/') + 1);
  if (PROFILE.test(name)) return name;
  throw usageFailure('--profile must be 1 to 64 of A-Z a-z 0-9 _ . @ : + -', 'svc setup aws');
}

/** Returns the block for `~/.aws/config` with all profiles that the command writes. */
export function profilesBlock(
  program: string,
  note: AwsNote,
  platform: NodeJS.Platform = process.platform,
): MarkedBlock {
  const lines = Object.entries(note).flatMap(([name, { server, role, region, duration }]) => [
    sectionOf(name),
    `credential_process = ${quoted(program, platform)} aws credential-process --server ${server} --role ${quoted(role)}` +
      (duration === undefined ? '' : ` --duration ${duration}`) +
      (region === undefined ? '' : ` --region ${region}`),
    ...(region === undefined ? [] : [`region = ${region}`]),
  ]);
  return { name: AWS_BLOCK, lines, position: 'bottom', sections: AWS_SECTIONS };
}

/**
 * Returns true if a text has a profile of this name. The command must not write a second one,
 * because two sections of one name would break the file. The caller passes the text without the
 * command's own block.
 */
export function hasProfile(text: string, name: string): boolean {
  const wanted = sectionOf(name);
  return text.split('\n').some((line) => line.trim().replaceAll(/\s+/g, ' ') === wanted);
}

function sectionOf(name: string): string {
  return name === 'default' ? '[default]' : `[profile ${name}]`;
}

function quoted(text: string, platform: NodeJS.Platform = process.platform): string {
  if (/^[\w./@:+=,-]+$/.test(text)) return text;
  if ((platform === 'win32' ? QUOTABLE_ON_WINDOWS : QUOTABLE).test(text)) return `"${text}"`;
  const whatToDo = 'Install svc at another path, or write the profile by hand.';
  throw new CliFailure(`The AWS tools cannot run ${text}.`, whatToDo, STATUS.failed);
}
