import type { Command } from '../command/command.js';
import { serverAddress, useServer } from '../files/config-file.js';
import { parseArguments } from '../program/arguments.js';
import { usageFailure } from '../program/failure.js';

const USAGE = 'svc use SERVER';

/** `svc use SERVER`: chooses the server of later commands. */
export const command: Command = {
  usage: USAGE,
  help: ['SERVER is an address such as https://login.example.com.'],
  async run(args, { places, terminal }) {
    const { positionals } = parseArguments(args, { positionals: 1 }, USAGE);
    const [given] = positionals;
    if (given === undefined) throw usageFailure('The server is missing.', USAGE);
    const server = serverAddress(given);
    await useServer(places.config, server);
    terminal.result({ server }, [`Commands use ${server} from now on.`]);
  },
};
