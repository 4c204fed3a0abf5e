import { readConfig, serverAddress, type CliConfig } from '../files/config-file.js';
import { folderOf, places, type Places } from '../files/places.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { CliFailure, STATUS } from '../program/failure.js';
import type { Connection } from '../login/connect.js';
import type { ServerClient } from '../server/server-client.js';
import type { TokenKind } from '../server/stored-token.js';
import type { Terminal } from '../terminal/terminal.js';

/**
 * The name of a command and the words that may follow it, for the list of commands and for
 * completions.
 */
export interface CommandWords {
  readonly name: string;
  /** A line about the command for `svc help`. */
  readonly summary: string;
  /** The words that may follow, for the completions of shells. */
  readonly words?: readonly string[];
}

/**
 * The settings, files and connections of a command. None of them is read or opened before a command
 * asks for it.
 */
export class CommandContext {
  constructor(
    readonly terminal: Terminal,
    /** The value of `--server`. */
    private readonly givenServer: string | undefined,
    /** The names and words of all commands, for completions. */
    readonly commands: readonly CommandWords[] = [],
  ) {}

  /** The folders of the configuration and of the secrets. */
  get places(): Places {
    return places();
  }

  /** Reads `config.json`. */
  config(): CliConfig {
    return readConfig(this.places.config);
  }

  /**
   * Returns the origin of the server: that of `--server`, otherwise that of `config.json`.
   *
   * @throws CliFailure with status 3 before the first login
   */
  server(): string {
    const found = this.givenServer ?? this.config().server;
    if (found !== undefined) return serverAddress(found);
    const whatToDo = 'Run: svc login --server https://login.example.com';
    throw new CliFailure('No server is set.', whatToDo, STATUS.notLoggedIn);
  }

  /** Returns the folder with the token, the keys and the certificates of a server. */
  folder(server = this.server()): PrivateFolder {
    return folderOf(this.places.state, server);
  }

  /**
   * Returns a client that sends the stored token and lets the user touch the security key again if
   * the server demands it.
   *
   * @param kind `admin-token` sends the token of `svc login --admin`
   * @param options with `asksForTouch: false`, such a demand is a failure
   */
  client(kind: TokenKind = 'token', { asksForTouch = true } = {}): Promise<ServerClient> {
    return this.#connect({ kind }, asksForTouch);
  }

  /** Returns a client for a plugin, which another program runs without an input. */
  pluginClient(): Promise<ServerClient> {
    return this.#connect({ kind: 'token', isPlugin: true });
  }

  async #connect(
    how: Pick<Connection, 'kind' | 'isPlugin'>,
    asksForTouch = true,
  ): Promise<ServerClient> {
    const { connect } = await import('../login/connect.js');
    const [server, folder] = [this.server(), this.folder()];
    return connect({ server, folder, terminal: this.terminal, ...how }, asksForTouch);
  }
}
