-- The applications of an organization in the order in which they are listed.
CREATE INDEX oauth_clients_org_list ON oauth_clients (org_id, id) WHERE kind = 'application';
