-- The principals of a group of hosts: one certificate authority serves all organizations, so that they carry the organization.
CREATE OR REPLACE FUNCTION principals_of_hosts(name text, logins text[], org uuid) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_agg(l || '@' || name || ':' || org::text ORDER BY l COLLATE "C") FROM unnest(logins) l
$$;

-- The principals of a group of hosts, which each certificate of its people carries. A trigger keeps them.
ALTER TABLE access_targets ADD COLUMN IF NOT EXISTS principals text[];
ALTER TABLE access_targets ALTER COLUMN principals DROP EXPRESSION IF EXISTS, ALTER COLUMN principals DROP NOT NULL;

CREATE FUNCTION set_principals_of_target() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.principals := coalesce(principals_of_hosts(NEW.name, NEW.logins, NEW.org_id), '{}');
  RETURN NEW;
END $$;
CREATE TRIGGER set_principals BEFORE INSERT OR UPDATE OF name, logins, org_id ON access_targets
  FOR EACH ROW EXECUTE FUNCTION set_principals_of_target();

-- The decision about what a person reaches, as far as most requests do not need it. A statement that issues calls these functions,
-- because PostgreSQL prepares every part of a statement for each run, and the part of a function only if it runs. They read the
-- snapshot of the statement that calls them. Without statistics, PostgreSQL would read all assignments: enable_seqscan.
-- Replicas of two versions share them during an upgrade: another meaning gets another name.

-- True if an assignment of a target names a person, or a group of SCIM in which the person is.
CREATE OR REPLACE FUNCTION is_assigned(target uuid, person uuid) RETURNS boolean LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
BEGIN
  RETURN coalesce(
    EXISTS (SELECT FROM access_assignments x WHERE x.target_id = target AND x.user_id = person)
    OR (SELECT d.access_by_groups FROM deployment d WHERE d.only_row) AND EXISTS (
      SELECT FROM access_assignments x JOIN group_members m ON m.group_id = x.group_id
      WHERE x.target_id = target AND m.user_id = person), false);
END $$;

-- The newest touch of a session that fits the conditions of a target, in seconds since 1970, or NULL.
CREATE OR REPLACE FUNCTION fitting_touch(touches jsonb, models text, user_verification text) RETURNS float8 LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN (
    SELECT max((x.value ->> CASE WHEN user_verification IS NULL THEN 'at' ELSE 'uv' END)::float8)
    FROM jsonb_each(touches) x WHERE models IS NULL OR (x.value -> 'fips')::boolean);
END $$;

-- True if the patterns of a group match a host, as in ssh_config: one pattern matches, and no pattern that begins with ! does.
CREATE OR REPLACE FUNCTION matches_host(patterns text[], host text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN coalesce((
    SELECT bool_or(p NOT LIKE '!%') AND bool_and(p NOT LIKE '!%') FROM unnest(patterns) p
    WHERE lower(host) LIKE translate(replace(replace(lower(ltrim(p, '!')), '%', '\%'), '_', '\_'), '*?', '%_')), false);
END $$;

-- A group of hosts whose principals a certificate carries.
CREATE TYPE hosts_in_certificate AS (target_id uuid, principals text[]);

-- A request for a certificate of a person. A host leaves the groups that match it, names (NULL for all) leave these principals.
CREATE TYPE asked_hosts AS (n int, person uuid, org uuid, touches jsonb, names text[], host text);

-- The groups of hosts that the person of a request reaches.
CREATE TYPE hosts_of_person AS (
  n                    int,
  is_admitted          boolean,                -- a group admits the person
  is_met               boolean,                -- the session meets the conditions of one
  is_closed            boolean,                -- no group that matches the host admits the person, but there is one
  principals           text[],                 -- what a certificate carries
  carried              hosts_in_certificate[],
  carried_names        text[],
  ends                 timestamptz,            -- the end of the oldest touch that it counts
  listed               jsonb,                  -- every group that admits the person; NULL if the organization has none
  has_unmet            boolean,                -- there is a group whose conditions are not met: the first one's follow
  touch_within_seconds int,
  models               text,
  user_verification    text
);

-- Returns the groups of hosts that the people of requests reach, a row for each request. The requests share one query, because
-- PostgreSQL prepares a query for each run. It hides the array from the planner, which would plan anew for each one.
CREATE FUNCTION reach_of_hosts(asked asked_hosts[]) RETURNS SETOF hosts_of_person LANGUAGE plpgsql STABLE ROWS 10
SET enable_seqscan = off AS $$
DECLARE
  t     record;
  r     hosts_of_person;
  own   text[];
  touch float8;
BEGIN
  FOR t IN
    SELECT q.n, q.org, q.touches, q.names, q.host, g.*
    FROM (SELECT asked AS requests) a CROSS JOIN LATERAL unnest((SELECT a.requests)) q LEFT JOIN LATERAL (
      SELECT h.id, h.name, h.hosts, h.principals, h.touch_within_seconds, h.models, h.user_verification,
             num_nonnulls(h.touch_within_seconds, h.models, h.user_verification) > 0 AS has_conditions
      FROM access_targets h WHERE h.org_id = q.org AND h.kind = 'host_group' AND h.access = 'everyone'
      UNION ALL
      SELECT h.id, h.name, h.hosts, h.principals, h.touch_within_seconds, h.models, h.user_verification,
             num_nonnulls(h.touch_within_seconds, h.models, h.user_verification) > 0
      FROM access_targets h
      WHERE h.org_id = q.org AND h.kind = 'host_group' AND h.access = 'assigned' AND h.id = ANY (ARRAY(
        SELECT x.target_id FROM access_assignments x WHERE x.of_hosts AND x.user_id = q.person
        UNION ALL
        SELECT y.target_id
        FROM group_members m CROSS JOIN LATERAL (
          SELECT x.target_id FROM access_assignments x WHERE x.of_hosts AND x.group_id = m.group_id OFFSET 0) y
        WHERE m.user_id = q.person AND (SELECT d.access_by_groups FROM deployment d WHERE d.only_row)))
    ) g ON q.host IS NULL OR matches_host(g.hosts, q.host)
    ORDER BY q.n, g.name COLLATE "C"
  LOOP
    IF r.n <> t.n THEN
      RETURN NEXT r;
      r := NULL;
    END IF;
    IF r.n IS NULL THEN
      r := (t.n, t.id IS NOT NULL, false, false, '{}', NULL, NULL, NULL,
            CASE WHEN t.id IS NOT NULL AND t.host IS NULL THEN '[]' END, false, NULL, NULL, NULL)::hosts_of_person;
    END IF;
    IF t.id IS NULL THEN
      IF EXISTS (SELECT FROM access_targets h WHERE h.org_id = t.org AND h.kind = 'host_group') THEN
        r.listed := '[]';
        r.is_closed := t.host IS NOT NULL AND EXISTS (
          SELECT FROM access_targets h WHERE h.org_id = t.org AND h.kind = 'host_group' AND matches_host(h.hosts, t.host));
      END IF;
      CONTINUE;
    END IF;
    own := t.principals;
    IF t.names IS NOT NULL THEN
      own := ARRAY(SELECT x FROM unnest(own) WITH ORDINALITY o (x, i) WHERE x = ANY (t.names) ORDER BY i);
    END IF;
    IF t.has_conditions THEN
      touch := fitting_touch(t.touches, t.models, t.user_verification);
      IF touch IS NULL OR touch < extract(epoch FROM now())::float8 - t.touch_within_seconds THEN
        IF NOT r.has_unmet AND (own <> '{}' OR t.names = '{}') THEN
          r.has_unmet := true;
          r.touch_within_seconds := t.touch_within_seconds;
          r.models := t.models;
          r.user_verification := t.user_verification;
        END IF;
        r.listed := r.listed || jsonb_build_object('name', t.name, 'hosts', t.hosts, 'carried', false);
        CONTINUE;
      END IF;
      IF own <> '{}' THEN
        r.ends := least(r.ends, to_timestamp(touch + t.touch_within_seconds));
      END IF;
    END IF;
    r.is_met := true;
    r.listed := r.listed || jsonb_build_object('name', t.name, 'hosts', t.hosts, 'carried', own <> '{}');
    IF own <> '{}' THEN
      r.principals := r.principals || own;
      r.carried := r.carried || (t.id, own)::hosts_in_certificate;
      r.carried_names := r.carried_names || t.name;
    END IF;
  END LOOP;
  IF r.n IS NOT NULL THEN
    RETURN NEXT r;
  END IF;
END $$;
