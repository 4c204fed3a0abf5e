-- A resource that an organization registered is refused to every other organization. Resources are compared as WHATWG URL writes them:
-- scheme and host in lower case, no default port, a path of at least one slash.
CREATE FUNCTION resource_host(resource text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT rtrim(lower(substring($1 FROM '^[A-Za-z][A-Za-z0-9+.-]*://(\[[^]/?#]*\]|[^/?#:]+)')), '.')
$$;
CREATE FUNCTION resource_key(resource text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce((
    SELECT lower(m[1]) || '://' || rtrim(lower(m[2]), '.')
        || CASE WHEN lower(m[1]) || coalesce(m[3], ':') IN ('https:', 'http:', 'https:443', 'http:80') THEN '' ELSE m[3] END
        || CASE WHEN m[4] LIKE '/%' THEN '' ELSE '/' END || m[4]
    FROM regexp_match($1, '^([Hh][Tt][Tt][Pp][Ss]?)://(\[[^]/?#]*\]|[^/?#:]+)(:[0-9]*)?(.*)$') AS m), $1)
$$;
CREATE INDEX oauth_clients_resource_key ON oauth_clients (resource_key(resource)) WHERE kind = 'kubernetes';
