/** The injection token of SVC_CERTIFICATION_TEST_TOKEN. */
export const CERTIFICATION_TOKEN = Symbol('certification test token');
