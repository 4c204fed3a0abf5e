import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { blockChange, blockRemoval, stepChange, type Change } from '../changes/change.js';
import { withoutBlock } from '../changes/marked-block.js';
import { noteChange, setupNote } from '../changes/setup-note.js';
import type { SetupPart, SetupPlan, SetupRequest } from '../changes/setup-part.js';
import { fileNoteChange, fileRemovals, toolFile, type ToolFile } from '../changes/tool-file.js';
import { readTextFile } from '../changes/text-file.js';
import type { CommandContext } from '../command/command-context.js';
import { folderOf } from '../files/places.js';
import { variable } from '../program/environment.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { withListedRoles } from './listed-profiles.js';
import {
  AWS_BLOCK,
  AWS_SECTIONS,
  hasProfile,
  profileName,
  profilesBlock,
  type AwsNote,
} from './profiles.js';
import { CACHE_FOLDER } from './session/role-cache.js';
import { isRegion, roleChoices } from './session/role-choices.js';

const USAGE = 'svc setup aws --role ARN [--profile NAME] [--region REGION] [--duration SECONDS]';

/** `svc setup aws`: writes profiles into `~/.aws/config` that run `svc aws credential-process`. */
export const awsPart: SetupPart = {
  name: AWS_BLOCK,
  summary: 'gives the AWS CLI and SDKs the credentials of a role',
  values: ['role', 'profile', 'region', 'duration'],
  help: [
    '--role ARN          a further role; --remove takes all profiles of svc out again',
    '--profile NAME      the name of the profile; the name of the role by default',
    '--region REGION     the region of the profile and of STS; AWS_REGION by default',
    '--duration SECONDS  the life of the credentials, 3600 by default',
  ],
  install,
  remove,
};

async function install({
  context,
  options,
  isNamed,
  reach,
  home,
  program,
}: SetupRequest): Promise<SetupPlan> {
  const before = awsNote(context);
  const file = configFile(home);
  const path = file.present;
  const isAsked = options.value('role') !== undefined;
  const asked = isAsked ? withProfile(context, options, before) : before;
  const after = reach
    ? withListedRoles(asked, reach.aws, {
        server: context.server(),
        isTaken: (name) => isTakenIn(path, name),
      })
    : asked;
  if (Object.keys({ ...before, ...after }).length === 0) {
    if (!isNamed)
      return { changes: [], notes: [`aws was left out: no role is known. Run: ${USAGE}`] };
    throw new CliFailure('svc setup aws needs a role.', `Run: ${USAGE}`, STATUS.usage);
  }
  // The server listed every role that the profiles had, and lists none of them any more.
  if (Object.keys(after).length === 0) {
    const files = profileRemovals(context, home);
    return { ...files, changes: [...files.changes, ...noteChange(context, AWS_BLOCK, undefined)] };
  }
  for (const name of Object.keys(after)) assertFree(path, name);
  return {
    changes: [
      ...blockChange(path, profilesBlock(program, after)),
      ...fileNoteChange(context, file),
      ...noteChange(context, AWS_BLOCK, after),
    ],
    notes: [
      ...Object.keys(after).flatMap((name) => shadowNote(home, name)),
      ...Object.entries(after)
        .filter(([, { region }]) => region === undefined)
        .map(([name, { role }]) => regionNote(name, role)),
      ...Object.keys(after)
        .filter((name) => before[name] === undefined)
        .map((name) => `Then: aws --profile ${name} sts get-caller-identity`),
    ],
  };
}

async function remove({ context, home }: SetupRequest): Promise<SetupPlan> {
  const servers = new Set(Object.values(awsNote(context)).map(({ server }) => server));
  const files = profileRemovals(context, home);
  return {
    ...files,
    changes: [
      ...files.changes,
      ...[...servers].flatMap((server) => cacheRemoval(context, server)),
      ...noteChange(context, AWS_BLOCK, undefined),
    ],
  };
}

/** Returns the changes that remove the profiles from every file into which the setup wrote them. */
function profileRemovals(context: CommandContext, home: string): SetupPlan {
  return fileRemovals(context, configFile(home), (path) =>
    blockRemoval(path, AWS_BLOCK, AWS_SECTIONS),
  );
}

/** Adds the profile that the options describe, or replaces the profile of the same name. */
function withProfile(
  context: CommandContext,
  options: SetupRequest['options'],
  before: AwsNote,
): AwsNote {
  const { role, region, duration } = roleChoices(options, USAGE);
  const profile = {
    server: context.server(),
    role,
    ...withRegion(region ?? regionOfEnvironment()),
    ...(options.value('duration') !== undefined && { duration }),
  };
  return { ...before, [profileName(options.value('profile'), role)]: profile };
}

/** Returns the region that the user's shell names for the AWS tools; undefined if it names none. */
function regionOfEnvironment(): string | undefined {
  const region = variable('AWS_REGION') ?? variable('AWS_DEFAULT_REGION');
  return region !== undefined && isRegion(region) ? region : undefined;
}

const withRegion = (region: string | undefined) => (region === undefined ? {} : { region });

/** Returns the line about a profile without a region, which most commands of AWS need. */
function regionNote(name: string, role: string): string {
  return `aws: the profile ${name} has no region, and most AWS commands need one. Run: svc setup aws --role ${role} --profile ${name} --region eu-central-1`;
}

function awsNote(context: CommandContext): AwsNote {
  return (setupNote(context, AWS_BLOCK) ?? {}) as AwsNote;
}

function configFile(home: string): ToolFile {
  const name = 'AWS_CONFIG_FILE';
  const paths = { named: fileOf(name, home), usual: join(home, '.aws', 'config') };
  return toolFile(AWS_BLOCK, name, paths);
}

/**
 * Returns the path in a variable of the AWS tools, which read `~` at its beginning as the home
 * folder; undefined if it is not set.
 */
function fileOf(name: string, home: string): string | undefined {
  return variable(name)?.replace(/^~(?=$|[/\\])/, () => home);
}

/** Returns true if the file has a profile of this name that the user wrote by hand. */
function isTakenIn(path: string, name: string): boolean {
  const { bytes } = readTextFile(path);
  return bytes !== undefined && hasProfile(withoutBlock(bytes, AWS_BLOCK).text ?? '', name);
}

/**
 * Checks that the name of a profile can be used.
 * @throws CliFailure for the name of a profile that the user wrote by hand
 */
function assertFree(path: string, name: string): void {
  if (!isTakenIn(path, name)) return;
  const whatToDo = 'Choose another name with --profile, or remove that profile by hand.';
  throw new CliFailure(`${path} has a profile ${name} already.`, whatToDo);
}

/**
 * Returns a warning if `~/.aws/credentials` has keys for the profile, because the AWS tools prefer
 * these to `credential_process`.
 */
function shadowNote(home: string, name: string): string[] {
  const path = fileOf('AWS_SHARED_CREDENTIALS_FILE', home) ?? join(home, '.aws', 'credentials');
  const { bytes } = readTextFile(path);
  const isShadowed = bytes?.split('\n').some((line) => line.trim() === `[${name}]`) === true;
  return isShadowed ? [`${path} has keys for ${name}, which the AWS tools take first.`] : [];
}

function cacheRemoval(context: CommandContext, server: string): Change[] {
  const folder = folderOf(context.places.state, server);
  const path = folder.file(CACHE_FOLDER);
  if (!existsSync(path)) return [];
  return [stepChange(`remove ${path} (credentials of roles)`, () => folder.remove(CACHE_FOLDER))];
}
