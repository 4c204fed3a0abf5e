import './scale.js';

// A test file that imports this module is run by `npm run test:scale` and not by `npm test`. Such a
// file uses a whole system, such as a browser or the programs of a guide, which takes too long for
// each `npm test`. A faster test of the same code remains in `npm test`; the table in
// test/README.md names it.
