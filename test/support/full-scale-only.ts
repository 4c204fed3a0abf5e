import './scale.js';

// A test file that imports this module runs in `npm run test:scale`, and not in `npm test`. It uses
// a whole system, such as a browser or the programs of a guide, and that takes too long for
// `npm test`. The table in test/README.md names the faster test of the same code that `npm test`
// runs.
