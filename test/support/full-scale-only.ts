import './scale.js';

// A test file that imports this module runs in `npm run test:scale` alone. Such a file uses a whole
// system, such as a browser or the programs of a guide, and costs too much for each `npm test`. A
// faster test of the same code remains in `npm test`; the table in test/README.md names it.
