import type { CommandEntry } from './command/command.js';

/** Every command, in the order of `svc help`. Its file loads when the user runs it. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'status',
    summary: 'Shows who you are, on which server, and until when',
    load: () => import('./account/status.js'),
  },
  {
    name: 'use',
    summary: 'Chooses the server that commands use',
    load: () => import('./machine/use.js'),
  },
];
