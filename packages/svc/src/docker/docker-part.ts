import { existsSync } from 'node:fs';
import { accountOf, ownRoles, type OwnRole } from '../aws/own-roles.js';
import { assertRole } from '../aws/session/role-choices.js';
import { domainOf } from '../aws/session/sts-endpoint.js';
import { noteChange } from '../changes/setup-note.js';
import { fileNoteChange, fileRemovals, realPath } from '../changes/tool-file.js';
import type { SetupPart, SetupPlan, SetupRequest } from '../changes/setup-part.js';
import { CliFailure, STATUS, usageFailure } from '../program/failure.js';
import { dockerConfigFile, helpersChange, helpersIn } from './docker-config.js';
import { DOCKER, dockerNote, HELPER, type NotedRegistry } from './docker-note.js';
import { isOnPath, scriptChange, scriptPath, scriptRemoval } from './helper-script.js';
import { registryOf } from './registry.js';

const USAGE = 'svc setup docker [--registry HOST [--role ARN]]...';

type Registries = Readonly<Record<string, NotedRegistry>>;

/**
 * `svc setup docker`: makes `svc` the credential helper of the registries of AWS. A plain
 * `svc setup` does nothing for Docker before the first `svc setup docker`. The reason is that a
 * helper replaces the login that the user made by `docker login`.
 */
export const dockerPart: SetupPart = {
  name: DOCKER,
  summary: 'gives Docker tokens for the registries of AWS (ECR); only if it is named',
  values: ['registry', 'role'],
  help: [
    '--registry HOST  a further registry, such as 123456789012.dkr.ecr.eu-central-1.amazonaws.com',
    '                 or public.ecr.aws; without it, that of each role in its account and region',
    '--role ARN       the role for the registry, if several are in its account, or none is',
  ],
  install,
  remove,
};

async function install(request: SetupRequest): Promise<SetupPlan> {
  const { context, isNamed, home, program } = request;
  const before = dockerNote(context);
  if (!isNamed && Object.keys(before.registries).length === 0) return { changes: [] };
  if (process.platform === 'win32') {
    const whatToDo = 'Use: svc aws exec -- aws ecr get-login-password';
    throw new CliFailure('svc setup docker is for Linux and macOS.', whatToDo, STATUS.usage);
  }
  const file = dockerConfigFile(home);
  const path = file.present;
  const isTaken = (host: string) => ![undefined, HELPER].includes(helpersIn(path)[host]);
  const asked = isNamed ? askedRegistries(request) : {};
  for (const host of Object.keys(asked)) assertFree(path, host, isTaken);
  const { registries, notes } = await withListed(
    request,
    { ...before.registries, ...asked },
    isTaken,
  );
  const hosts = Object.keys(registries);
  if (hosts.length === 0 && Object.keys(before.registries).length === 0) {
    const message = 'No role has a region, so no registry is known.';
    throw new CliFailure(message, `Run: ${USAGE}`, STATUS.usage);
  }
  const newFiles = [...new Set([...(before.newFiles ?? []), ...(existsSync(path) ? [] : [path])])];
  const script = before.script ?? scriptPath(program, home);
  const note = { registries, ...(newFiles.length > 0 && { newFiles }), script };
  return {
    changes: [
      ...scriptChange(script, program),
      ...helpersChange(path, hosts, isIn(newFiles, path)),
      ...fileNoteChange(context, file),
      ...noteChange(context, DOCKER, note),
    ],
    notes: [
      ...notes,
      ...(isOnPath(script) ? [] : [`docker: ${script} is not on the PATH, so Docker misses it.`]),
      ...hosts
        .filter((host) => before.registries[host] === undefined)
        .map((host) => `Then: docker pull ${host}/IMAGE`),
    ],
  };
}

async function remove({ context, home }: SetupRequest): Promise<SetupPlan> {
  const { newFiles = [], script } = dockerNote(context);
  const files = fileRemovals(context, dockerConfigFile(home), (path) =>
    helpersChange(path, [], isIn(newFiles, path)),
  );
  return {
    ...files,
    changes: [
      ...files.changes,
      ...scriptRemoval(script),
      ...noteChange(context, DOCKER, undefined),
    ],
  };
}

/** Returns true if one of the paths leads to the same file as another path. */
function isIn(paths: readonly string[], other: string): boolean {
  return paths.some((path) => realPath(path) === realPath(other));
}

/**
 * Returns the registries that the options name.
 * @throws CliFailure with status 2 for a host that is no registry of AWS, or a wrong role
 */
function askedRegistries({ context, options }: SetupRequest): Registries {
  const role = options.value('role');
  if (role !== undefined) assertRole(role, '--role', USAGE);
  const server = context.server();
  return Object.fromEntries(
    options.all('registry').map((given) => {
      const registry = registryOf(given);
      if (!registry) throw usageFailure(`${given} is no registry of AWS.`, USAGE);
      return [registry.host, { server, ...(role !== undefined && { role }) }];
    }),
  );
}

function assertFree(path: string, host: string, isTaken: (host: string) => boolean): void {
  if (!isTaken(host)) return;
  const whatToDo = 'Remove that line, or keep that helper.';
  throw new CliFailure(`${path} has another helper for ${host}.`, whatToDo);
}

/**
 * Adds the registry in the account and region of each role of the user. It leaves out a registry
 * that has another helper, or several roles in its account. It removes the registries of roles that
 * the server does not list any more.
 */
async function withListed(
  { context, reach }: SetupRequest,
  before: Registries,
  isTaken: (host: string) => boolean,
): Promise<{ readonly registries: Registries; readonly notes: readonly string[] }> {
  if (!reach) return { registries: before, notes: [] };
  const server = context.server();
  const isListed = (one: NotedRegistry) => one.server === server && one.listed === true;
  const own = Object.entries(before).filter(([, one]) => !isListed(one));
  const registries = new Map<string, NotedRegistry>(own);
  const notes: string[] = [];
  const roles = await ownRoles(context);
  for (const host of new Set(roles.flatMap(hostsOf))) {
    const several = roles.filter((role) => accountOf(role) === host.slice(0, 12)).length > 1;
    if (registries.has(host)) continue;
    if (isTaken(host)) notes.push(`docker: another helper answers for ${host} already`);
    else if (several) {
      notes.push(`docker: you have several roles for ${host}. Run: ${chooseRole(host)}`);
    } else registries.set(host, { server, listed: true });
  }
  return { registries: Object.fromEntries(registries), notes };
}

function chooseRole(host: string): string {
  return `svc setup docker --registry ${host} --role ARN`;
}

/**
 * Returns the host of the registry in the account and the region of a role; none for a role without
 * a region.
 */
function hostsOf(role: OwnRole): string[] {
  const { region } = role;
  if (region === undefined) return [];
  return [`${accountOf(role)}.dkr.ecr.${region}.${domainOf(region)}`];
}
