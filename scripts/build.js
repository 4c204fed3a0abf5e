/**
 * Runs `npm run build`: compiles changed sources, removes outputs without a source, copies the
 * assets, and bundles the command and the server.
 */
import { bundleCommand, bundleServer, compile, prepareBuild } from './projects.js';

prepareBuild();
try {
  await Promise.all([compile(), bundleCommand(), bundleServer()]);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
