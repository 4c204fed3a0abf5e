/**
 * The largest body of a request for one resource, in bytes. The attributes of a user together, and
 * the elements of one attribute, have the same limit. Bulk requests have a limit of their own (RFC
 * 7644 §3.7.4).
 */
export const RESOURCE_SIZE = 64 * 1024;
