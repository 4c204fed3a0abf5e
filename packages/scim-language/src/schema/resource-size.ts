/**
 * The largest body of a request for one resource, in bytes. The stored attributes of a user, and
 * the values of one attribute, may together have as many bytes, so that several requests cannot
 * make a resource larger than one request may. Bulk requests have a limit of their own (RFC
 * 7644 §3.7.4).
 */
export const RESOURCE_SIZE = 64 * 1024;
