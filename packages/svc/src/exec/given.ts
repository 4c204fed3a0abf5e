import { chosenRole, ownRoles, type OwnRole } from '../aws/own-roles.js';
import { roleVariables } from '../aws/role-variables.js';
import { sessionChoices } from '../aws/session/role-choices.js';
import { combined, type EnvironmentChange } from '../child/child-environment.js';
import { READ_ONLY_CHANGE } from '../child/read-only.js';
import type { CommandContext } from '../command/command-context.js';
import { gitNote } from '../git/git-token.js';
import type { ParsedArguments } from '../program/arguments.js';
import { isReadOnly } from '../program/environment.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { listedReach } from '../reach/own-reach.js';
import { chosenCluster, ownClusters, writeKubeconfig, type OwnCluster } from './cluster.js';
import { gitHubTarget, gitHubVariables, repositoryHere, type GitHubTarget } from './github.js';

/** The options of `svc exec` and `svc env` that say which credentials the program gets. */
export const GIVEN_OPTIONS = {
  flags: ['read-only'],
  values: ['aws', 'github', 'kube', 'region', 'duration'],
} as const;

/** The lines of `--help` about {@link GIVEN_OPTIONS}. */
export const GIVEN_HELP = [
  '--aws ROLE             a role: a name of svc aws roles, a profile, or an ARN',
  '--github OWNER[/REPO]  a token for a repository, or for all if an admin allows that',
  '--kube CLUSTER         a context of svc setup kubectl, as the only one of the kubeconfig',
  '--region, --duration   of the session of the role',
  '--read-only            a role session and a GitHub token that can only read, and no cluster',
  '',
  'Without one of the first three, all that is unambiguous is given: your only role, the repository',
  'of this folder, and your only cluster.',
];

/** The credentials that a program is to get. */
interface Chosen {
  readonly role: OwnRole | undefined;
  readonly github: GitHubTarget | undefined;
  readonly cluster: OwnCluster | undefined;
  /** The kinds of credentials that were left out, each with the reason. */
  readonly leftOut: readonly string[];
}

/** The change that puts the credentials into an environment, and the kubeconfig that it names. */
export interface GivenCredentials {
  readonly change: EnvironmentChange;
  /** The name of the kubeconfig in the folder of the server; undefined without a cluster. */
  readonly file: string | undefined;
}

/**
 * Fetches the credentials that the options name, and returns the change of an environment that
 * contains them. If the options name none, it chooses all that are unambiguous, and tells the user
 * in a line which it chose and which not.
 *
 * @param fileOf returns the name of the kubeconfig for a context
 * @throws CliFailure if nothing can be given, or a part is refused
 */
export async function given(
  context: CommandContext,
  options: ParsedArguments,
  usage: string,
  fileOf: (context: string) => string,
): Promise<GivenCredentials> {
  const reads = options.has('read-only') || isReadOnly();
  sessionChoices(options, usage); // a wrong option fails before the server is asked
  const isNamed = ['aws', 'github', 'kube'].some((name) => options.value(name) !== undefined);
  const chosen = isNamed ? await named(context, options, usage) : await unambiguous(context, reads);
  const { role, github, cluster } = chosen;
  if (reads && cluster) throw noReadOnlyCluster();
  if (!isNamed) tell(context, chosen);
  const file = cluster && fileOf(cluster.context);
  const changes = [
    ...(reads ? [READ_ONLY_CHANGE] : []),
    ...(role
      ? [
          await roleVariables(context, {
            role: role.arn,
            ...sessionChoices(options, usage, role),
          }),
        ]
      : []),
    ...(github ? [await gitHubVariables(context, github, reads)] : []),
    ...(cluster && file !== undefined
      ? [{ set: { KUBECONFIG: writeKubeconfig(context, cluster, file) }, unset: [] }]
      : []),
  ];
  return { change: combined(...changes), file };
}

async function named(
  context: CommandContext,
  options: ParsedArguments,
  usage: string,
): Promise<Chosen> {
  const [aws, github, kube] = ['aws', 'github', 'kube'].map((name) => options.value(name));
  return {
    github: github === undefined ? undefined : gitHubTarget(github, usage),
    cluster: kube === undefined ? undefined : chosenCluster(context, kube),
    role: aws === undefined ? undefined : await chosenRole(context, aws),
    leftOut: [],
  };
}

/**
 * Chooses the only role, the repository of this folder and the only cluster. If there are several,
 * none is chosen.
 */
async function unambiguous(context: CommandContext, reads: boolean): Promise<Chosen> {
  const leftOut: string[] = [];
  const roles = await ownRoles(context);
  if (roles.length > 1) leftOut.push(`aws (${roles.length} roles: --aws ROLE)`);
  const clusters = ownClusters(context);
  if (reads && clusters.length > 0) leftOut.push('kube (a token cannot be made read-only)');
  else if (clusters.length > 1) leftOut.push(`kube (${clusters.length} clusters: --kube CLUSTER)`);
  const github = await ownRepository(context);
  if (github === 'elsewhere') leftOut.push('github (no repository here: --github OWNER/REPO)');
  return {
    role: roles.length === 1 ? roles[0] : undefined,
    github: github === 'elsewhere' ? undefined : github,
    cluster: !reads && clusters.length === 1 ? clusters[0] : undefined,
    leftOut,
  };
}

/**
 * Returns the repository of this folder, if the server lists its owner at GitHub for the user.
 * Returns `elsewhere` if the server lists only other owners, or if there is no repository here, and
 * undefined if the server lists no owner.
 */
async function ownRepository(
  context: CommandContext,
): Promise<GitHubTarget | 'elsewhere' | undefined> {
  const owners = ((await listedReach(context))?.github ?? []).map(({ owner }) => owner);
  if (owners.length === 0) return undefined;
  const url = gitNote(context)[context.server()]?.web_url ?? 'https://github.com';
  const here = repositoryHere(url);
  const isOwn = owners.some((owner) => owner.toLowerCase() === here?.owner.toLowerCase());
  return isOwn && here ? here : 'elsewhere';
}

function noReadOnlyCluster(): CliFailure {
  const message = 'A token for a cluster cannot be made read-only, so none is given.';
  return new CliFailure(message, 'Leave --kube or --read-only out.', STATUS.usage);
}

/**
 * Tells the user which credentials are given although the options name none.
 * @throws CliFailure if no credential is given
 */
function tell({ terminal }: CommandContext, { role, github, cluster, leftOut }: Chosen): void {
  const parts = [
    ...(role ? [`aws ${role.name}`] : []),
    ...(github ? [`github ${[github.owner, github.repository].join('/')}`] : []),
    ...(cluster ? [`kube ${cluster.context}`] : []),
  ];
  const rest = leftOut.length === 0 ? '' : `left out: ${leftOut.join(', ')}`;
  if (parts.length === 0) {
    const message = `Nothing is given${rest === '' ? '.' : `; ${rest}.`}`;
    throw new CliFailure(message, 'Name what you need: --aws, --github or --kube', STATUS.usage);
  }
  terminal.warn(`svc: ${[parts.join(', '), rest].filter((text) => text !== '').join('; ')}`);
}
