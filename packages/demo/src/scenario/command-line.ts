import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { logInWithKey } from './ceremonies.js';
import { unexpected } from './http-client.js';
import type { ScenarioContext, StepResult } from './step.js';

const CERTIFICATE = z.object({ serial: z.string(), principals: z.array(z.string()) });
const STATUS = z.object({ user: z.object({ email: z.string() }), expires_at: z.string() });

/**
 * Logs the `svc` command in with a device code, which a touch of the key approves. Then gets an SSH
 * certificate by the command.
 */
export async function approveCommandLine(context: ScenarioContext): Promise<StepResult> {
  const { client, email, command } = context;
  const home = await mkdtemp(join(tmpdir(), 'svc-demo-'));
  const svc = (args: readonly string[], onError?: (text: string) => void) =>
    runCommand({ command, home }, [...args, '--server', client.baseUrl], onError);
  try {
    let approval: Promise<string> | undefined;
    await svc(['login', '--device'], (text) => {
      const code = /^ {2}([A-Z]{4}-[A-Z]{4})$/m.exec(text)?.[1];
      if (code !== undefined) approval ??= approve(context, code);
    });
    const userCode = await approval;
    const status = STATUS.parse(JSON.parse(await svc(['status', '--json'])));
    const { serial, principals } = CERTIFICATE.parse(
      JSON.parse(await svc(['ssh', 'cert', '--json'])),
    );
    await svc(['logout']);
    const isRight = status.user.email === email && principals.includes(email);
    if (!isRight || userCode === undefined)
      throw new Error('the command did not get what it asked for');
    return {
      line: `svc login --device: ${userCode} approved with a touch; svc ssh cert: serial ${serial}`,
      result: { user_code: userCode, serial, expires_at: status.expires_at },
    };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** Approves a device code with a touch of the key, as the page `/device` does. Returns the code. */
async function approve({ client, key }: ScenarioContext, userCode: string): Promise<string> {
  await logInWithKey(client, key);
  const answer = await client.post('/device/approve', { user_code: userCode });
  if (answer.status !== 200) throw unexpected(answer);
  return userCode;
}

/** Runs the `svc` command with its files in a folder, and returns its standard output. */
function runCommand(
  { command, home }: { readonly command: string; readonly home: string },
  args: readonly string[],
  onError: (text: string) => void = () => {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('env', [`SVC_HOME=${home}`, process.execPath, command, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => (output.stdout += String(chunk)));
    child.stderr.on('data', (chunk) => {
      output.stderr += String(chunk);
      onError(output.stderr);
    });
    child.once('error', reject);
    child.once('close', (status) => {
      if (status === 0) resolve(output.stdout);
      else reject(new Error(`svc ${args[0]} ended with ${status}: ${output.stderr.trim()}`));
    });
  });
}
