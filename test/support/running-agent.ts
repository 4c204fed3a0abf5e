import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { runProgram } from './svc-command.js';

/** A real ssh-agent of a test. */
export interface RunningAgent {
  /** The environment variables by which other programs find the agent. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Returns the types of the keys in the agent, sorted, with the names that `ssh-add -l` prints.
   */
  readonly keys: () => Promise<string[]>;
  /** Ends the agent, and resolves when its process has ended. */
  readonly stop: () => Promise<void>;
}

/**
 * Starts an ssh-agent with a socket in a folder.
 *
 * @param env further environment variables of the agent, such as `SSH_ASKPASS`, the program that
 *   asks for a PIN
 */
export async function startAgent(
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningAgent> {
  const socket = join(folder, 'agent.sock');
  const path = process.env['PATH'] ?? '';
  const child = spawn('ssh-agent', ['-D', '-a', socket], {
    stdio: 'ignore',
    env: { PATH: path, HOME: folder, ...env },
  });
  await expect.poll(() => existsSync(socket)).toBe(true);
  const own = { SSH_AUTH_SOCK: socket };
  return {
    env: own,
    async keys() {
      const { stdout } = await runProgram('ssh-add', ['-l'], { env: { ...own, PATH: path } });
      const types = stdout.split('\n').flatMap((line) => /\((\S+)\)$/.exec(line)?.[1] ?? []);
      return types.toSorted();
    },
    async stop() {
      if (child.exitCode === null && child.kill()) await once(child, 'exit');
    },
  };
}
