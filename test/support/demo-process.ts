import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { prepareDataDir } from './cluster-template.js';
import { start, type EntryPoint } from './entry-point.js';
import { freePort } from './free-port.js';

/** A running demo with its tour. */
export interface DemoProcess {
  readonly demo: EntryPoint;
  readonly baseUrl: string;
  readonly dataDir: string;
}

/** Matches the line in which the demo prints the URL of its tour for a visitor's browser. */
export const TOUR_ADDRESS = /^ +(http:\/\/localhost:\d+)\/demo$/m;

/** Matches the line in which the demo prints the URL of the service. */
export const URL_TO_OPEN = /^ +(http:\/\/localhost:\d+)$/m;

/** Returns the lines that a demo wrote to standard error. The demo must write none. */
export function complaintsOf(stderr: string): string[] {
  return stderr.split('\n').filter((line) => line !== '');
}

/**
 * Returns the environment of a production start on a free port. The service gets an identity
 * provider with this issuer.
 */
export async function productionOf(issuer: string) {
  const port = await freePort();
  const baseUrl = `http://localhost:${port}`;
  const environment = {
    SVC_BASE_URL: baseUrl,
    SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
    SVC_JWT_SECRET: 'a root secret that only this test knows',
    SVC_IDPS: 'corp',
    SVC_IDP_CORP_TYPE: 'oidc',
    SVC_IDP_CORP_ISSUER: issuer,
    SVC_IDP_CORP_CLIENT_ID: 'svc',
    SVC_IDP_CORP_CLIENT_SECRET: 'secret',
    SVC_LOG_FORMAT: 'json',
  };
  return { baseUrl, environment };
}

/**
 * Starts the built demo in a folder, and waits until its tour is ready. A migrated data directory
 * saves time. `demo.test.ts` tests the start without one.
 */
export async function startDemoProcess(cwd: string): Promise<DemoProcess> {
  await prepareDataDir(join(cwd, 'data-demo'));
  const demo = start('demo/main.js', ['--port', String(await freePort())], { cwd });
  const [, baseUrl = ''] = await demo.printed(TOUR_ADDRESS);
  return { demo, baseUrl, dataDir: join(cwd, 'data-demo') };
}

/** Returns the ids of a process and all its descendants. Works only on Linux. */
export function processesOf(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    try {
      const status = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(Number(name), Number(status.slice(status.lastIndexOf(')') + 4).split(' ')[0]));
    } catch {
      // The process has ended since the folder was listed.
    }
  }
  const found = [pid];
  for (const one of found) {
    for (const [child, parent] of parents) if (parent === one) found.push(child);
  }
  return found;
}

/**
 * Returns the addresses at which processes listen for TCP connections. They have the kernel's form,
 * such as `0100007F:0BB8` for 127.0.0.1 and port 3000.
 */
export function listeningAddresses(pids: readonly number[]): string[] {
  const inodes = new Set(pids.flatMap(socketsOf));
  const lines = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
    existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').slice(1) : [],
  );
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === '0A' && inodes.has(inode ?? ''))
    .map(([, local = '']) => local);
}

function socketsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/${fd}`))?.[1] ?? [];
      } catch {
        return []; // closed meanwhile
      }
    });
  } catch {
    return []; // ended meanwhile
  }
}
