import type { CommandEntry } from './command/command.js';

/**
 * Every command, in the order of `svc help`. The file of a command is loaded when the user runs it.
 */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'login',
    summary: 'Logs in with your security key',
    load: () => import('./account/login.js'),
  },
  {
    name: 'status',
    summary: 'Shows who you are, on which server, and until when',
    isReadOnly: true,
    load: () => import('./account/status.js'),
  },
  {
    name: 'setup',
    summary: 'Connects ssh and other tools with the server; shows each change first',
    words: ['ssh', 'aws', 'git', 'kubectl', 'docker'],
    load: () => import('./setup/setup.js'),
  },
  {
    name: 'ssh',
    summary: 'Logs in to a host; renews and shows the SSH certificate of this machine',
    words: ['check', 'cert', 'status', 'add'],
    ownWords: ['check', 'recheck', 'cert', 'status', 'add', 'help'],
    toolWords: ['check', 'recheck'],
    load: () => import('./ssh/commands/ssh.js'),
  },
  {
    name: 'aws',
    summary: 'Gives programs, and the AWS console, the credentials of a role',
    words: ['exec', 'console', 'roles', 'credential-process'],
    toolWords: ['credential-process'],
    isReadOnly: true,
    load: () => import('./aws/aws.js'),
  },
  {
    name: 'exec',
    summary: 'Runs a program with tokens for AWS, GitHub and a cluster',
    isReadOnly: true,
    load: () => import('./exec/exec.js'),
  },
  {
    name: 'env',
    summary: 'Prints these tokens as lines for a shell',
    isReadOnly: true,
    load: () => import('./exec/env.js'),
  },
  {
    name: 'kubectl',
    summary: 'Gives kubectl a token for a cluster',
    words: ['token'],
    toolWords: ['token'],
    load: () => import('./kubectl/kubectl.js'),
  },
  {
    name: 'keys',
    summary: 'Lists, adds, renames and removes your security keys',
    words: ['add', 'rename', 'remove'],
    load: () => import('./account/keys.js'),
  },
  {
    name: 'logout',
    summary: 'Ends the login here and at the server',
    load: () => import('./account/logout.js'),
  },
  {
    name: 'host',
    summary: 'Makes sshd of this host accept the certificates of the server',
    words: ['setup', 'status', 'remove'],
    load: () => import('./host/host.js'),
  },
  {
    name: 'admin',
    summary: 'Manages your organization, after svc login --admin',
    words: [
      'members',
      'keys',
      'access',
      'applications',
      'scim-tokens',
      'api-tokens',
      'domains',
      'audit',
    ],
    acts: {
      members: 'list show promote demote deactivate activate revoke remove readmit pass',
      access: 'list show people check assign unassign everyone set export',
      applications:
        'list show register approve revoke-tokens remove secrets add-secret revoke-secret',
      'scim-tokens': 'list create rotate revoke',
      'api-tokens': 'list create rotate revoke',
      domains: 'list add verify remove',
    },
    load: () => import('./admin/admin.js'),
  },
  {
    name: 'api',
    summary: 'Sends a request to the API of the server',
    words: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    load: () => import('./admin/api.js'),
  },
  {
    name: 'git',
    summary: 'Gives git a token for GitHub, and signs commits; git itself runs it',
    words: ['credential', 'sign', 'signers'],
    toolWords: ['credential', 'sign'],
    load: () => import('./git/git.js'),
  },
  {
    name: 'docker',
    summary: 'Gives Docker a token for a registry of AWS; Docker itself runs it',
    words: ['credential'],
    toolWords: ['credential'],
    isReadOnly: true,
    load: () => import('./docker/docker.js'),
  },
  {
    name: 'audit',
    summary: 'Checks that nobody changed the audit log',
    words: ['verify', 'watch'],
    load: () => import('./audit/audit.js'),
  },
  {
    name: 'use',
    summary: 'Chooses the server that commands use',
    load: () => import('./machine/use.js'),
  },
  {
    name: 'doctor',
    summary: 'Checks this machine and says what to do',
    isReadOnly: true,
    load: () => import('./machine/doctor.js'),
  },
  {
    name: 'completions',
    summary: 'Prints the completions for a shell',
    isReadOnly: true,
    words: ['bash', 'zsh', 'fish', 'powershell'],
    load: () => import('./machine/completions.js'),
  },
  {
    name: 'update',
    summary: 'Installs a newer version of svc, if the maintainers signed it',
    load: () => import('./update/update.js'),
  },
];
