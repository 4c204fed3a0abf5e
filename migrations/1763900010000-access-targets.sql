-- What an organization's people can reach: applications (clusters too), AWS roles, groups of hosts, GitHub installations.
-- Every application and installation of an organization has a row, so that an issuing statement has a row to lock.
CREATE TABLE access_targets (
  id                   uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  org_id               uuid        NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
  kind                 text        NOT NULL CHECK (kind IN ('application', 'aws_role', 'host_group', 'github_installation')),
  client_id            text        UNIQUE REFERENCES oauth_clients (id) ON DELETE CASCADE,
  installation_id      bigint      UNIQUE REFERENCES github_installations (id) ON DELETE CASCADE,
  role_arn             text,
  region               text,
  name                 text,
  hosts                text[]      NOT NULL DEFAULT '{}', -- patterns of ssh_config
  logins               text[]      NOT NULL DEFAULT '{}',
  access               text        NOT NULL DEFAULT 'everyone' CHECK (access IN ('everyone', 'assigned')),
  touch_within_seconds int         CHECK (touch_within_seconds > 0),
  models               text        CHECK (models = 'fips-only'),
  user_verification    text        CHECK (user_verification = 'required'),
  version              bigint      NOT NULL DEFAULT 1,
  created_at           timestamptz NOT NULL DEFAULT now(),
  updated_at           timestamptz NOT NULL DEFAULT now(),
  CHECK (CASE kind
    WHEN 'application'         THEN num_nonnulls(installation_id, role_arn, region, name) = 0 AND client_id IS NOT NULL
    WHEN 'github_installation' THEN num_nonnulls(client_id, role_arn, region, name) = 0 AND installation_id IS NOT NULL
    WHEN 'aws_role'            THEN num_nonnulls(client_id, installation_id) = 0 AND role_arn IS NOT NULL AND name IS NOT NULL
    WHEN 'host_group'          THEN num_nonnulls(client_id, installation_id, role_arn, region) = 0 AND name IS NOT NULL
  END)
);
CREATE UNIQUE INDEX access_targets_role ON access_targets (org_id, role_arn) WHERE kind = 'aws_role';
CREATE UNIQUE INDEX access_targets_host_group ON access_targets (org_id, name) WHERE kind = 'host_group';
CREATE INDEX access_targets_open_hosts ON access_targets (org_id) WHERE kind = 'host_group' AND access = 'everyone';
-- Without the kind: for a role, a planner without statistics would prefer it to access_targets_role.
CREATE INDEX access_targets_org ON access_targets (org_id, id);

-- Whom a target with access 'assigned' admits: a person, or the members of a group.
CREATE TABLE access_assignments (
  id         uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  target_id  uuid        NOT NULL REFERENCES access_targets (id) ON DELETE CASCADE,
  user_id    uuid        REFERENCES users (id) ON DELETE CASCADE,
  group_id   uuid        REFERENCES groups (id) ON DELETE CASCADE,
  of_hosts   boolean     NOT NULL, -- true if the target is a group of hosts; a trigger sets it
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((user_id IS NULL) <> (group_id IS NULL))
);
CREATE UNIQUE INDEX access_assignments_of_user ON access_assignments (target_id, user_id) WHERE user_id IS NOT NULL;
CREATE UNIQUE INDEX access_assignments_of_group ON access_assignments (target_id, group_id) WHERE group_id IS NOT NULL;
-- With the target: a person or group may be assigned to a thousand.
CREATE INDEX access_assignments_user ON access_assignments (user_id, target_id) WHERE user_id IS NOT NULL;
CREATE INDEX access_assignments_group ON access_assignments (group_id, target_id) WHERE group_id IS NOT NULL;
-- A certificate carries all groups of hosts of its person, who may be assigned to a thousand other targets.
CREATE INDEX access_assignments_hosts_of_user ON access_assignments (user_id, target_id) WHERE of_hosts AND user_id IS NOT NULL;
CREATE INDEX access_assignments_hosts_of_group ON access_assignments (group_id, target_id) WHERE of_hosts AND group_id IS NOT NULL;

CREATE FUNCTION set_kind_of_assignment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.of_hosts := EXISTS (SELECT FROM access_targets t WHERE t.id = NEW.target_id AND t.kind = 'host_group');
  RETURN NEW;
END $$;
CREATE TRIGGER set_kind BEFORE INSERT ON access_assignments FOR EACH ROW EXECUTE FUNCTION set_kind_of_assignment();

-- The queue of what ends with a reach. The transaction that ends the reach writes the row, by the triggers below: no path can
-- forget it. No foreign keys: a row outlives its target. A row without user_ids is about every person who holds something.
CREATE TABLE access_endings (
  id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id          uuid        NOT NULL,
  target_id       uuid        NOT NULL,
  kind            text        NOT NULL,
  client_id       text,
  installation_id bigint,
  target_name     text        NOT NULL,
  rule            text        NOT NULL CHECK (rule IN ('membership', 'assignment', 'rule', 'condition', 'target')),
  user_ids        uuid[],
  place           text        NOT NULL DEFAULT '', -- where the next batch goes on
  actor_id        uuid,                            -- the admin who made the change
  scim_token_id   uuid,                            -- the SCIM token that made it
  request_id      text,
  made_in         xid8        NOT NULL DEFAULT pg_current_xact_id(),
  created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX access_endings_org ON access_endings (org_id, id);
CREATE INDEX access_endings_made_in ON access_endings (made_in, target_id);

-- The groups of hosts whose principals a certificate carries. No foreign keys: a group may be gone before its certificates.
CREATE TABLE ssh_certificate_groups (
  target_id    uuid        NOT NULL,
  serial       bigint      NOT NULL,
  user_id      uuid        NOT NULL,
  session_id   uuid        NOT NULL,
  principals   text[]      NOT NULL,
  valid_before timestamptz NOT NULL,
  PRIMARY KEY (target_id, serial)
);
CREATE INDEX ssh_certificate_groups_expiry ON ssh_certificate_groups (valid_before);
CREATE INDEX ssh_certificate_groups_user ON ssh_certificate_groups (user_id, target_id, serial);

-- The last touch in a session by each security key: {"<key id>": {"at": seconds, "uv": seconds or null, "fips": boolean}}.
ALTER TABLE sessions ADD COLUMN touches jsonb NOT NULL DEFAULT '{}';

-- A key that is removed takes its touches along.
CREATE FUNCTION forget_touches_of_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE sessions SET touches = touches - OLD.id::text WHERE user_id = OLD.user_id AND touches ? OLD.id::text;
  RETURN NULL;
END $$;
CREATE TRIGGER forget_touches AFTER DELETE ON authenticators FOR EACH ROW EXECUTE FUNCTION forget_touches_of_key();

-- aws_roles: any role, or only listed ones. aws_role_required: a token must name its role.
ALTER TABLE organizations
  ADD COLUMN aws_roles text NOT NULL DEFAULT 'any',
  ADD COLUMN aws_role_required boolean NOT NULL DEFAULT false;
ALTER TABLE organizations ADD CONSTRAINT organizations_aws_roles CHECK (aws_roles IN ('any', 'listed')) NOT VALID;

-- False: groups of SCIM decide nothing. A start writes the setting SVC_ACCESS_BY_GROUPS.
ALTER TABLE deployment ADD COLUMN access_by_groups boolean NOT NULL DEFAULT true;

-- Every application of an organization is a target from its first moment. If it comes to another organization, it gets another
-- target there, which is no wider and has no assignments.
CREATE FUNCTION keep_target_of_client() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  org uuid := CASE WHEN NEW.kind IN ('application', 'kubernetes') THEN NEW.org_id END;
  b   access_targets;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM access_targets WHERE client_id = NEW.id AND org_id IS DISTINCT FROM org RETURNING * INTO b;
  END IF;
  IF org IS NOT NULL THEN
    INSERT INTO access_targets (org_id, kind, client_id, access, touch_within_seconds, models, user_verification)
    VALUES (org, 'application', NEW.id, coalesce(b.access, 'everyone'), b.touch_within_seconds, b.models, b.user_verification)
    ON CONFLICT (client_id) DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER keep_target AFTER INSERT OR UPDATE OF org_id, kind ON oauth_clients
  FOR EACH ROW EXECUTE FUNCTION keep_target_of_client();

-- The rule of an installation that was unlinked: a new link begins with it, so that a repair opens nothing. No foreign keys.
CREATE TABLE access_kept_rules (
  installation_id      bigint PRIMARY KEY,
  access               text   NOT NULL,
  touch_within_seconds int,
  models               text,
  user_verification    text
);

CREATE FUNCTION keep_rule_of_installation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO access_kept_rules VALUES (OLD.installation_id, OLD.access, OLD.touch_within_seconds, OLD.models, OLD.user_verification)
  ON CONFLICT (installation_id) DO UPDATE SET access = excluded.access, touch_within_seconds = excluded.touch_within_seconds,
    models = excluded.models, user_verification = excluded.user_verification;
  RETURN NULL;
END $$;
CREATE TRIGGER keep_rule AFTER DELETE ON access_targets FOR EACH ROW
  WHEN (OLD.installation_id IS NOT NULL AND (OLD.access <> 'everyone' OR num_nonnulls(OLD.touch_within_seconds, OLD.models, OLD.user_verification) > 0))
  EXECUTE FUNCTION keep_rule_of_installation();

CREATE FUNCTION keep_target_of_installation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  b access_kept_rules;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM access_targets WHERE installation_id = NEW.id AND org_id <> NEW.org_id;
  END IF;
  DELETE FROM access_kept_rules WHERE installation_id = NEW.id RETURNING * INTO b;
  INSERT INTO access_targets (org_id, kind, installation_id, access, touch_within_seconds, models, user_verification)
  VALUES (NEW.org_id, 'github_installation', NEW.id, coalesce(b.access, 'everyone'), b.touch_within_seconds, b.models, b.user_verification)
  ON CONFLICT (installation_id) DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER keep_target AFTER INSERT OR UPDATE OF org_id ON github_installations
  FOR EACH ROW EXECUTE FUNCTION keep_target_of_installation();

-- The principals of a group of hosts: one certificate authority serves all organizations, so that they carry the organization.
CREATE FUNCTION principals_of_group(t access_targets) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT array_agg(l || '@' || t.name || ':' || t.org_id ORDER BY l) FROM unnest(t.logins) l
$$;

-- A name that an admin knows a target by.
CREATE FUNCTION name_of_target(t access_targets) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce(t.name,
    (SELECT coalesce(c.metadata ->> 'client_name', c.id) FROM oauth_clients c WHERE c.id = t.client_id),
    (SELECT n.owner FROM github_installations n WHERE n.id = t.installation_id),
    t.role_arn, t.id::text)
$$;

-- The end of memberships, in whatever way they end. More than 1,000 people of one group are not named, and a target whose whole row
-- is queued gets no further one. The membership of a person who is removed needs none: the account ends all.
CREATE FUNCTION queue_ended_memberships() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO access_endings (org_id, target_id, kind, client_id, installation_id, target_name, rule, user_ids)
  SELECT t.org_id, t.id, t.kind, t.client_id, t.installation_id, name_of_target(t), 'membership', e.user_ids
  FROM (
    SELECT g.group_id, CASE WHEN count(*) <= 1000 THEN array_agg(g.user_id) END AS user_ids
    FROM gone g WHERE EXISTS (SELECT FROM users u WHERE u.id = g.user_id)
    GROUP BY g.group_id
  ) e JOIN access_assignments x ON x.group_id = e.group_id JOIN access_targets t ON t.id = x.target_id
  WHERE t.access = 'assigned' AND NOT EXISTS (
    SELECT FROM access_endings q
    WHERE q.made_in = pg_current_xact_id() AND q.target_id = t.id AND q.user_ids IS NULL);
  RETURN NULL;
END $$;
CREATE TRIGGER queue_ended AFTER DELETE ON group_members REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION queue_ended_memberships();

-- The end of assignments. The assignment of a person who is removed needs none: the account ends all.
CREATE FUNCTION queue_ended_assignments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO access_endings (org_id, target_id, kind, client_id, installation_id, target_name, rule, user_ids)
  SELECT t.org_id, t.id, t.kind, t.client_id, t.installation_id, name_of_target(t),
         CASE WHEN e.of_group THEN 'membership' ELSE 'assignment' END, e.user_ids
  FROM (
    SELECT x.target_id, bool_or(x.group_id IS NOT NULL AND NOT EXISTS (SELECT FROM groups g WHERE g.id = x.group_id)) AS of_group,
           CASE WHEN bool_and(x.user_id IS NOT NULL) AND count(*) <= 1000 THEN array_agg(x.user_id) END AS user_ids
    FROM gone x
    WHERE x.user_id IS NULL OR EXISTS (SELECT FROM users u WHERE u.id = x.user_id)
    GROUP BY x.target_id
  ) e JOIN access_targets t ON t.id = e.target_id
  WHERE t.access = 'assigned';
  RETURN NULL;
END $$;
CREATE TRIGGER queue_ended AFTER DELETE ON access_assignments REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION queue_ended_assignments();

-- An assignment of a group waits for a change of the group that is under way, and the next change of the group sees it: else the end
-- of a membership could miss a target that is being assigned. FOR SHARE comes before the lock of the foreign key, which is weaker.
CREATE FUNCTION hold_assigned_group() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM groups WHERE id = NEW.group_id FOR SHARE;
  RETURN NEW;
END $$;
CREATE TRIGGER hold_group BEFORE INSERT ON access_assignments FOR EACH ROW
  WHEN (NEW.group_id IS NOT NULL) EXECUTE FUNCTION hold_assigned_group();

-- A rule or a condition that became narrower, and other principals of a group of hosts. If a rule becomes narrower, its groups are
-- held for the same reason.
CREATE FUNCTION queue_changed_targets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM groups WHERE id IN (
    SELECT x.group_id FROM changed t JOIN before_change b ON b.id = t.id JOIN access_assignments x ON x.target_id = t.id
    WHERE t.access = 'assigned' AND b.access = 'everyone')
  ORDER BY id FOR SHARE;
  INSERT INTO access_endings (org_id, target_id, kind, client_id, installation_id, target_name, rule)
  SELECT t.org_id, t.id, t.kind, t.client_id, t.installation_id, name_of_target(t),
         CASE WHEN (t.touch_within_seconds, t.models, t.user_verification)
                   IS DISTINCT FROM (b.touch_within_seconds, b.models, b.user_verification) THEN 'condition' ELSE 'rule' END
  FROM changed t JOIN before_change b ON b.id = t.id
  WHERE (t.access = 'assigned' AND b.access = 'everyone')
     OR (t.touch_within_seconds, t.models, t.user_verification)
        IS DISTINCT FROM (b.touch_within_seconds, b.models, b.user_verification)
     OR (t.kind = 'host_group' AND (t.name, t.logins) IS DISTINCT FROM (b.name, b.logins));
  RETURN NULL;
END $$;
CREATE TRIGGER queue_changed AFTER UPDATE ON access_targets REFERENCING OLD TABLE AS before_change NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION queue_changed_targets();

-- A target that is deleted. What hangs on an application or an installation ends with these, but stays if they come to another
-- organization.
CREATE FUNCTION queue_deleted_targets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO access_endings (org_id, target_id, kind, client_id, installation_id, target_name, rule)
  SELECT t.org_id, t.id, t.kind, t.client_id, t.installation_id, name_of_target(t), 'target'
  FROM gone t
  WHERE t.kind = 'host_group' OR EXISTS (SELECT FROM oauth_clients c WHERE c.id = t.client_id)
     OR EXISTS (SELECT FROM github_installations n WHERE n.id = t.installation_id);
  RETURN NULL;
END $$;
CREATE TRIGGER queue_deleted AFTER DELETE ON access_targets REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION queue_deleted_targets();

-- Whether a token for AWS must name its role. The row is locked first: the UPDATE then sees what another change has committed.
CREATE FUNCTION note_changed_roles() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM organizations WHERE id = coalesce(NEW.org_id, OLD.org_id) FOR NO KEY UPDATE;
  UPDATE organizations o
  SET aws_role_required = EXISTS (
        SELECT FROM access_targets t
        WHERE t.org_id = o.id AND t.kind = 'aws_role'
          AND (t.access <> 'everyone' OR num_nonnulls(t.touch_within_seconds, t.models, t.user_verification) > 0))
  WHERE o.id = coalesce(NEW.org_id, OLD.org_id);
  RETURN NULL;
END $$;
CREATE TRIGGER note_new_role AFTER INSERT ON access_targets FOR EACH ROW
  WHEN (NEW.kind = 'aws_role') EXECUTE FUNCTION note_changed_roles();
CREATE TRIGGER note_changed_role AFTER UPDATE ON access_targets FOR EACH ROW
  WHEN (NEW.kind = 'aws_role') EXECUTE FUNCTION note_changed_roles();
CREATE TRIGGER note_ended_role AFTER DELETE ON access_targets FOR EACH ROW
  WHEN (OLD.kind = 'aws_role') EXECUTE FUNCTION note_changed_roles();

-- The count of the changes of who reaches what in an organization. Every change updates it as the last act of its transaction. An
-- issuing statement locks the row and compares the count with that of its snapshot: either it has seen the change, or the change
-- waits for it, and what it issued ends.
CREATE TABLE access_versions (
  org_id  uuid   PRIMARY KEY REFERENCES organizations (id) ON DELETE CASCADE,
  version bigint NOT NULL DEFAULT 0
);
INSERT INTO access_versions (org_id) SELECT id FROM organizations;

CREATE FUNCTION begin_access_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO access_versions (org_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER begin_access_version AFTER INSERT ON organizations FOR EACH ROW EXECUTE FUNCTION begin_access_version();

-- Once for each transaction. A number of a transaction may come again after a restore: the row itself tells whether it is this one's.
CREATE FUNCTION count_change_of_access(org uuid) RETURNS void LANGUAGE sql AS $$
  INSERT INTO access_versions AS v (org_id) SELECT id FROM organizations WHERE id = org
  ON CONFLICT (org_id) DO UPDATE SET version = v.version + 1
  WHERE v.xmin <> pg_current_xact_id()::xid
$$;

CREATE FUNCTION count_changed_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN PERFORM count_change_of_access(OLD.org_id); END IF;
  IF TG_OP <> 'DELETE' THEN PERFORM count_change_of_access(NEW.org_id); END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER count_change AFTER INSERT OR UPDATE OR DELETE ON access_targets
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_changed_row();
-- A membership or an assignment that ended is in the queue, if it opened a target.
CREATE CONSTRAINT TRIGGER count_change AFTER INSERT ON access_endings
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_changed_row();

CREATE FUNCTION count_changed_organization() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count_change_of_access(NEW.id);
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER count_change AFTER UPDATE OF aws_roles ON organizations
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.aws_roles IS DISTINCT FROM NEW.aws_roles)
  EXECUTE FUNCTION count_changed_organization();

-- The installations that are linked already. The triggers keep what changes from now on.
INSERT INTO access_targets (org_id, kind, installation_id)
SELECT org_id, 'github_installation', id FROM github_installations
ON CONFLICT (installation_id) DO NOTHING;
