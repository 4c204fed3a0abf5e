import { isAbsolute, join } from 'node:path';
import { homeFolder, variable } from '../program/environment.js';
import { CliFailure } from '../program/failure.js';
import { PrivateFolder } from './private-folder.js';

/**
 * The program in the folder of a server that git runs to sign (`svc setup git --sign`). It holds no
 * secret, and stays there after a logout, because the configuration of git names it.
 */
export const SIGN_PROGRAM = 'git-sign';

/**
 * The folders in which the command keeps its files. If `SVC_HOME` is set, both are in it; otherwise
 * the variables and defaults of the XDG Base Directory rules decide.
 */
export interface Places {
  /** The folder of `config.json`. */
  readonly config: PrivateFolder;
  /** The folder of secrets, with one folder for each server. */
  readonly state: PrivateFolder;
}

/**
 * Returns the folders of the command.
 * @throws CliFailure for an `SVC_HOME` that is not absolute, or without a HOME
 */
export function places(): Places {
  const own = variable('SVC_HOME');
  if (own !== undefined) {
    if (!isAbsolute(own)) {
      throw new CliFailure('SVC_HOME must be an absolute path.', 'Set it to a full path.', 2);
    }
    return { config: new PrivateFolder(own), state: new PrivateFolder(join(own, 'state')) };
  }
  return {
    config: new PrivateFolder(join(base('XDG_CONFIG_HOME', '.config'), 'svc')),
    state: new PrivateFolder(join(base('XDG_STATE_HOME', '.local/state'), 'svc')),
  };
}

/**
 * Returns a base folder of XDG (freedesktop.org's rules for where programs keep files). A relative
 * path in the variable is ignored, as XDG requires.
 */
function base(name: string, fallback: string): string {
  const value = variable(name);
  if (value !== undefined && isAbsolute(value)) return value;
  const home = homeFolder();
  if (home === undefined) throw new CliFailure('HOME is not set.', 'Set HOME, or SVC_HOME.');
  return join(home, fallback);
}

/** Returns the folder with the secrets for one server. */
export function folderOf(state: PrivateFolder, server: string): PrivateFolder {
  const { protocol, host } = new URL(server);
  const name = `${protocol === 'http:' ? 'http_' : ''}${host.replaceAll(':', '_')}`;
  return new PrivateFolder(state.file(name));
}
