import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';
import { installPackage } from '../node-binary.js';
import { run } from '../programs.js';
import { signAdHoc } from './macho-signature.js';
import { removeSignature } from './pe-signature.js';
import { PLATFORMS, runtimePackages } from './runtimes.js';

/**
 * The name of the script in the executables. It has no folder, so that the executables contain no
 * path of this machine.
 */
const MAIN = 'svc.mjs';

/**
 * Makes the executables of the command: the program of Node of each platform, with the script in
 * it. They are single executable applications of Node. None has a snapshot or a cache of compiled
 * code, because these would belong to one platform. So the bytes of the application are the same in
 * all executables.
 *
 * @param {{ script: string, work: string, npm: (folder: string, args: string[]) => void }} options
 *   the bundle of the command, an empty folder, and the function that runs npm in a folder
 * @returns {{ executables: Record<string, string>, license: string }} the path of each executable
 *   by its platform, and the license of Node
 */
export function makeExecutables({ script, work, npm }) {
  mkdirSync(work, { recursive: true });
  copyFileSync(script, join(work, MAIN));
  const own = `linux-${arch()}`;
  const builder = installRuntime(own, work, npm);
  const executables = Object.fromEntries(
    Object.keys(PLATFORMS).map((platform) => {
      const runtime = platform === own ? builder : installRuntime(platform, work, npm);
      const executable = join(work, `svc-${platform}`);
      writeApplication({ builder, runtime, executable, work });
      if (runtime !== builder) rmSync(runtime.folder, { recursive: true });
      if (platform.startsWith('darwin-')) signAdHoc(executable, 'svc');
      if (platform.startsWith('win-')) removeSignature(executable);
      return [platform, executable];
    }),
  );
  const license = join(work, 'LICENSE.node');
  renameSync(join(builder.folder, 'LICENSE'), license);
  rmSync(builder.folder, { recursive: true });
  return { executables, license };
}

function installRuntime(platform, work, npm) {
  const { name, program } = PLATFORMS[platform];
  const one = runtimePackages().find((runtime) => runtime.name === name);
  const folder = installPackage(one, npm, join(work, `runtime-${platform}`));
  const path = join(folder, program);
  if (!existsSync(path)) throw new Error(`${name} has no program`);
  return { folder, path };
}

/**
 * Writes a copy of a program of Node with the script in it. The variable NODE_OPTIONS must not have
 * an effect (`execArgvExtension`), because it could load code into a program that holds the
 * credentials of its user.
 */
function writeApplication({ builder, runtime, executable, work }) {
  const configuration = `${executable}.json`;
  const options = {
    main: MAIN,
    mainFormat: 'commonjs',
    executable: runtime.path,
    output: executable,
    disableExperimentalSEAWarning: true,
    useSnapshot: false,
    useCodeCache: false,
    execArgvExtension: 'none',
  };
  writeFileSync(configuration, JSON.stringify(options));
  run(builder.path, ['--build-sea', configuration], work);
}
