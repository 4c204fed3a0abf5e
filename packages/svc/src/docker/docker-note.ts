import { setupNote } from '../changes/setup-note.js';
import type { CommandContext } from '../command/command-context.js';

/** The name of two things: the part of `svc setup`, and its entry in `config.json`. */
export const DOCKER = 'docker';

/** The name of the helper in the configuration of Docker, which runs `docker-credential-svc`. */
export const HELPER = 'svc';

/** A registry for which Docker asks `svc`. */
export interface NotedRegistry {
  readonly server: string;
  /** The ARN of the role; undefined to use the user's only role in the account of the registry. */
  readonly role?: string;
  /** True for a registry of a role that the server lists. */
  readonly listed?: true;
}

/** The record of `svc setup docker` in `config.json`. */
export interface DockerNote {
  /** The registries by their hosts. */
  readonly registries: Readonly<Record<string, NotedRegistry>>;
  /** The paths of the configurations of Docker that the setup made. */
  readonly newFiles?: readonly string[];
  /** The path of the script `docker-credential-svc`. */
  readonly script?: string;
}

/** Returns what `svc setup docker` has recorded; no registries before the first setup. */
export function dockerNote(context: CommandContext): DockerNote {
  return { registries: {}, ...setupNote(context, DOCKER) };
}
