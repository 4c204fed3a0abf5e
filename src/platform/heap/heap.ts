import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type CollectGarbage = (options: { type: 'major'; flavor: 'last-resort' }) => void;

/**
 * The number of collections after which V8 drops the compiled code of a function that was not
 * called meanwhile: V8's default, and the number for code that only the start needed.
 */
const CODE_AGE = { default: 6, atStart: 1 } as const;

/**
 * Prepares the heap of V8 for requests, once, after the start of the process. It frees the memory
 * that only the start needed, which takes a tenth of a second. Loading the modules leaves garbage,
 * and makes V8 enlarge its young generation, by about 100 MB in all. The compiled code of the start
 * is dropped, too: a function that a request calls is compiled again.
 *
 * The code that V8 optimizes from then on allocates no object in the old generation only because
 * earlier objects of the same place in the code lived long (pretenuring). One such object keeps its
 * whole request alive (docs/performance/garbage.md).
 */
export function prepareHeap(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--expose-gc'); // gives `gc` only to contexts that are made after this call
  const collect = runInNewContext('gc') as CollectGarbage;
  setFlagsFromString(`--bytecode-old-age=${CODE_AGE.atStart}`);
  collect({ type: 'major', flavor: 'last-resort' });
  setFlagsFromString(`--bytecode-old-age=${CODE_AGE.default}`);
}
