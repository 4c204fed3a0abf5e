// vitest loads this file in every worker. Node has read the variable, and the programs that a test
// starts do without it, unless the test gives it to them.
delete process.env['NODE_COMPILE_CACHE'];
