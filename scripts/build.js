/**
 * Runs `npm run build`: compiles changed sources, removes outputs without a source, copies the
 * assets, bundles the command and the server, and renders the documents.
 */
import { buildDocuments } from './documents/build-documents.js';
import { bundleCommand, bundleServer, compile, prepareBuild } from './projects.js';

prepareBuild();
try {
  const documents = Promise.resolve().then(() => buildDocuments());
  await Promise.all([compile(), bundleCommand(), bundleServer(), documents]);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
