/**
 * The largest body of a request for one resource, in bytes. The stored attributes of a user
 * together have the same limit, and so have the values of one attribute. So several small requests
 * cannot make a resource larger than one request may. Servers may give bulk requests another limit
 * (RFC 7644 §3.7.4). svc-server does not, and also limits the number of their operations.
 */
export const RESOURCE_SIZE = 64 * 1024;
