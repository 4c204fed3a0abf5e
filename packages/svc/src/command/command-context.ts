import { readConfig, serverAddress, type CliConfig } from '../files/config-file.js';
import { folderOf, places, type Places } from '../files/places.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { CliFailure, STATUS } from '../program/failure.js';
import type { Connection } from '../login/connect.js';
import type { ServerClient } from '../server/server-client.js';
import type { TokenKind } from '../server/stored-token.js';
import type { Terminal } from '../terminal/terminal.js';

/**
 * The name of a command and the words that may follow it, for `svc help` and for the completions of
 * shells.
 */
export interface CommandWords {
  readonly name: string;
  /** A line about the command for `svc help`. */
  readonly summary: string;
  /** The words that may follow, for the completions of shells. */
  readonly words?: readonly string[];
  /** The words that follow the name if another program, such as ssh, runs the command. */
  readonly toolWords?: readonly string[];
  /**
   * The words that the command itself understands. Any other word begins the arguments of another
   * program, such as ssh, which gets them unchanged. It is undefined if the command runs no such
   * program.
   */
  readonly ownWords?: readonly string[];
  /**
   * True if the command is allowed in an environment with `SVC_READ_ONLY`, because there it only
   * reads, or gives credentials that can only read. All other commands are refused there.
   */
  readonly isReadOnly?: true;
  /** For some of `words`, the words that may follow. Several of them have spaces between them. */
  readonly acts?: Readonly<Record<string, string>>;
}

/**
 * Gives a command its settings, files and connections. Nothing is read or opened before the command
 * asks for it.
 */
export class CommandContext {
  constructor(
    readonly terminal: Terminal,
    /** The value of `--server`; undefined if it was not given. */
    private readonly givenServer: string | undefined,
    /** The names and words of all commands, for completions. */
    readonly commands: readonly CommandWords[] = [],
    /** True if another program, such as ssh, runs the command and waits for it. */
    readonly isForTool = false,
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
   * Returns the origin of the server: that of the option `--server`, or else that in `config.json`.
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
   * Returns a client that sends the stored token. If the server demands a new touch of the security
   * key, it lets the user log in again.
   *
   * @param kind `admin-token` sends the token of `svc login --admin`
   * @param options with `asksForTouch: false`, such a demand is a failure
   */
  client(kind: TokenKind = 'token', { asksForTouch = true } = {}): Promise<ServerClient> {
    return this.#connect({ kind }, asksForTouch);
  }

  /**
   * Returns a client for a plugin. Another program, such as kubectl, runs the plugin, and gives it
   * no input of the user.
   */
  pluginClient(): Promise<ServerClient> {
    return this.#connect({ kind: 'token', isPlugin: true });
  }

  async #connect(
    how: Pick<Connection, 'kind' | 'isPlugin'>,
    asksForTouch = true,
  ): Promise<ServerClient> {
    const { connect } = await import('../login/connect.js');
    const [server, folder] = [this.server(), this.folder()];
    const { terminal, isForTool } = this;
    const tellsNotices = !isForTool && !terminal.isJson;
    return connect({ server, folder, terminal, isForTool, tellsNotices, ...how }, asksForTouch);
  }
}
