import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Returns environment variables by which the TCP connections of a program come from one loopback
 * address. The program loads a library that does this. The library is compiled if the folder does
 * not have it yet. Programs without dynamic linking, such as etcd, ignore it.
 *
 * @param folder a folder that the user of the program can read
 * @param variables further variables; a library in their `LD_PRELOAD` is loaded too
 */
export function withOwnAddress(
  folder: string,
  address: string,
  variables: Readonly<Record<string, string>>,
): Record<string, string> {
  const library = join(folder, 'own-address.so');
  if (!existsSync(library)) {
    const source = join(import.meta.dirname, 'own-address.c');
    execFileSync('cc', ['-O1', '-shared', '-fPIC', '-o', library, source, '-ldl']);
    chmodSync(library, 0o755);
  }
  const others = variables['LD_PRELOAD'];
  const libraries = others === undefined ? library : `${others}:${library}`;
  return { ...variables, LD_PRELOAD: libraries, OWN_ADDRESS: address };
}
