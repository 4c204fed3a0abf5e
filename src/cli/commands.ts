import type { CommandEntry } from './command/command.js';

/** Every command, in the order of `svc help`. Its file loads when the user runs it. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'status',
    summary: 'Shows who you are, on which server, and until when',
    load: () => import('./account/status.js'),
  },
  {
    name: 'setup',
    summary: 'Connects ssh and other tools with the server; shows each change first',
    words: ['ssh'],
    load: () => import('./setup/setup.js'),
  },
  {
    name: 'ssh',
    summary: 'Renews and shows the SSH certificate of this machine',
    words: ['check', 'cert', 'status'],
    load: () => import('./ssh/ssh.js'),
  },
  {
    name: 'use',
    summary: 'Chooses the server that commands use',
    load: () => import('./machine/use.js'),
  },
];
