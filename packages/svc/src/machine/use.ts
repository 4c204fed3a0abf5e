import type { Command } from '../command/command.js';
import { serverAddress, useServer } from '../files/config-file.js';
import { parseArguments } from '../program/arguments.js';
import { usageFailure } from '../program/failure.js';
import { readDiscovery } from '../server/discovery.js';

const USAGE = 'svc use SERVER [--offline]';

/** `svc use SERVER`: chooses the server of later commands. */
export const command: Command = {
  usage: USAGE,
  help: [
    'SERVER is an address such as https://login.example.com. The server is asked first, so that a',
    'wrong address is noticed at once.',
    '--offline  does not ask the server, for a machine without a network',
  ],
  async run(args, { places, terminal }) {
    const options = parseArguments(args, { flags: ['offline'], positionals: 1 }, USAGE);
    const [given] = options.positionals;
    if (given === undefined) throw usageFailure('The server is missing.', USAGE);
    const server = serverAddress(given);
    if (!options.has('offline')) await readDiscovery(server, terminal);
    await useServer(places.config, server);
    terminal.result({ server }, [`Commands use ${server} from now on.`]);
  },
};
