import { join } from 'node:path';
import { keepInAgent, keptInAgent, takeFromAgents } from '../agent/agents.js';
import { blockChange, blockRemoval, stepChange, type Change } from '../changes/change.js';
import { noteChange } from '../changes/setup-note.js';
import type { SetupPart, SetupPlan, SetupRequest } from '../changes/setup-part.js';
import { folderOf } from '../files/places.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { STATUS, CliFailure } from '../program/failure.js';
import { existsSync } from 'node:fs';
import { SSH_FILES } from './certificate-cache.js';
import {
  hostPatterns,
  patternEntries,
  SSH_BLOCK,
  sshBlock,
  type SshHosts,
} from './config-block.js';
import { storedPublicKey } from './key-pair.js';
import { isSecurityKey, makeSecurityKey } from './security-key.js';
import type { CommandContext } from '../command/command-context.js';
import { HostileList, type ListedHosts } from '../reach/own-reach.js';
import { sshNote, type SshChoices, type SshNote } from './renewal.js';
import { storedCertificate } from './stored-certificate.js';

/**
 * `svc setup ssh`: adds a block to `~/.ssh/config`, by which `ssh` fetches a certificate before it
 * logs in to a host.
 */
export const sshPart: SetupPart = {
  name: SSH_BLOCK,
  summary: 'logs in to hosts with a certificate that is fetched on use',
  flags: ['sk', 'agent', 'confirm'],
  values: ['host', 'principal'],
  help: [
    "--host PATTERN    further hosts, such as '*.example.com'; may be given several times",
    '--principal NAME  asks for this name alone in the certificate; may be given several times',
    '--sk              keeps the private key in a security key',
    '--agent           a running ssh-agent gets the key and each new certificate',
    '--confirm         that agent asks before each use of the key',
  ],
  install,
  remove,
};

async function install(request: SetupRequest): Promise<SetupPlan> {
  const { context, home, program } = request;
  const server = context.server();
  const before = sshNote(context);
  const choices = await choicesOf(request, server, before[server]);
  if (!choices) {
    const note = "ssh was left out: no hosts are known. Run: svc setup ssh --host '*.example.com'";
    return { changes: [], notes: [note] };
  }
  const ofOthers = Object.entries(before).map(([name, one]) => [name, { ...one, byHost: true }]);
  const after: SshNote = { ...Object.fromEntries(ofOthers), [server]: choices };
  const servers = Object.entries(after).map(([name, known]): SshHosts => {
    const folder = folderOf(context.places.state, name);
    return {
      server: name,
      hosts: patternsOf(known),
      identityFile: folder.file(SSH_FILES.identity),
      certificateFile: folder.file(SSH_FILES.certificate),
      hostCertificates: folder.file(SSH_FILES.hosts),
    };
  });
  const folder = folderOf(context.places.state, server);
  const lacksKey = choices.sk === true && !isSecurityKey(storedPublicKey(folder));
  return {
    changes: [
      ...(lacksKey ? [securityKeyChange(request, server, choices)] : []),
      ...blockChange(configFile(home), sshBlock(program, servers)),
      ...agentChange(folder, choices),
      ...principalsChange(folder, choices, before[server]),
      ...noteChange(context, SSH_BLOCK, after),
    ],
    notes: (request.reach?.ssh ?? []).flatMap(({ hosts, logins }) =>
      hosts.length === 0 || logins.length === 0
        ? []
        : [`ssh: ${hosts.join(', ')} as ${logins.join(' or ')}`],
    ),
  };
}

/**
 * Returns the patterns that the user gave and those that the server listed, without duplicates, as
 * entries of {@link SshHosts}.
 */
function patternsOf({ hosts, listed = [] }: SshChoices): string[] {
  return [...new Set([...patternEntries(hosts), ...listed])];
}

/**
 * Returns the patterns in the server's list of hosts. The patterns are checked by the same rules as
 * `--host`. A group with a pattern that excludes hosts becomes one entry, because the pattern must
 * not exclude hosts of other groups.
 *
 * @throws HostileList for a text that is no pattern, so that nothing of the list is written
 */
function listedPatterns(server: string, groups: readonly ListedHosts[]): string[] {
  return groups.flatMap(({ hosts }) => {
    try {
      return patternEntries(hostPatterns(hosts));
    } catch (error) {
      if (!(error instanceof CliFailure)) throw error;
      throw new HostileList(server, `what is no pattern of hosts: ${JSON.stringify(hosts)}`);
    }
  });
}

function securityKeyChange(
  { context, reach }: SetupRequest,
  server: string,
  choices: SshChoices,
): Change {
  return stepChange(
    'make an SSH key inside the security key: ssh-keygen -t ed25519-sk -O verify-required',
    () => makeSecurityKey(context, server, choices, reach?.ssh ?? []),
  );
}

/**
 * Returns the change that makes `svc ssh check` hand each certificate to a running agent; none if
 * it does so already.
 */
function agentChange(folder: PrivateFolder, { agent, confirm = false }: SshChoices): Change[] {
  if (agent !== true || keptInAgent(folder)?.confirm === confirm) return [];
  const asking = confirm ? ', which asks before each use' : '';
  const what = `let svc ssh check keep the SSH key and certificate in a running ssh-agent${asking}`;
  return [stepChange(what, () => keepInAgent(folder, { confirm }))];
}

/**
 * Returns the change that removes the stored certificates, because they have other names than the
 * user now chose; none if the names are as before. The next SSH login fetches a new certificate.
 */
function principalsChange(
  folder: PrivateFolder,
  { principals }: SshChoices,
  before: SshChoices | undefined,
): Change[] {
  const isStored = existsSync(folder.file(SSH_FILES.folder)) && storedCertificate(folder);
  if (!isStored || principals?.join() === before?.principals?.join()) return [];
  const names = principals?.join(', ') ?? '';
  return [
    stepChange(`remove the stored SSH certificates: the next login gets one for ${names}`, () => {
      const { certificate, earlierCertificate, sets, hosts } = SSH_FILES;
      for (const name of [certificate, earlierCertificate, sets, hosts]) folder.remove(name);
    }),
  ];
}

async function remove({ context, home }: SetupRequest): Promise<SetupPlan> {
  const servers = Object.keys(sshNote(context));
  return {
    changes: [
      ...blockRemoval(configFile(home), SSH_BLOCK),
      ...servers.flatMap((server) => keyRemoval(context, server)),
      ...noteChange(context, SSH_BLOCK, undefined),
    ],
  };
}

function keyRemoval({ places, terminal }: CommandContext, server: string): Change[] {
  const folder = folderOf(places.state, server);
  const path = folder.file(SSH_FILES.folder);
  if (!existsSync(path)) return [];
  return [
    stepChange(`remove ${path} (SSH key pair and certificate), from agents too`, () => {
      const holding = takeFromAgents(folder);
      folder.remove(SSH_FILES.folder);
      if (holding.length === 0) return;
      terminal.warn('svc: An ssh-agent did not confirm that it gave the SSH key back.');
      terminal.warn('     If it is locked, unlock it and empty it: ssh-add -X && ssh-add -D');
    }),
  ];
}

/**
 * Returns the user's choices: from the options, or else from the last setup, or else from an answer
 * to a question. Returns undefined if there are no hosts.
 */
async function choicesOf(
  { context, options, isNamed, reach }: SetupRequest,
  server: string,
  before: SshChoices | undefined,
): Promise<SshChoices | undefined> {
  const { terminal } = context;
  let hosts = hostPatterns(options.all('host'));
  if (hosts.length === 0) hosts = [...(before?.hosts ?? [])];
  const listed = reach ? listedPatterns(server, reach.ssh) : [...(before?.listed ?? [])];
  if (hosts.length + listed.length === 0 && terminal.isInteractive) {
    const answer = await terminal.ask(
      `Which hosts accept certificates of ${new URL(server).host}? (such as *.example.com) `,
    );
    if (answer !== '') hosts = hostPatterns([answer]);
  }
  if (hosts.length + listed.length === 0) {
    if (!isNamed) return undefined;
    const whatToDo = "Run: svc setup ssh --host '*.example.com'";
    throw new CliFailure('svc setup ssh needs the hosts.', whatToDo, STATUS.usage);
  }
  const given = options.all('principal');
  const principals = given.length > 0 ? given : before?.principals;
  const sk = options.has('sk') || before?.sk === true;
  const agent = options.has('agent') || before?.agent === true;
  // The choice of `--confirm` belongs to `--agent`: a later setup with `--agent` alone switches it
  // off.
  const confirm = options.has('agent') ? options.has('confirm') : before?.confirm === true;
  if (options.has('confirm') && !options.has('agent')) {
    const whatToDo = 'Run: svc setup ssh --agent --confirm';
    throw new CliFailure('--confirm goes with --agent.', whatToDo, STATUS.usage);
  }
  return {
    hosts,
    ...(listed.length > 0 && { listed }),
    ...(principals && { principals }),
    ...(sk && { sk }),
    ...(agent && { agent }),
    ...(agent && confirm && { confirm }),
    byHost: true,
  };
}

function configFile(home: string): string {
  return join(home, '.ssh', 'config');
}
