-- batches of access_targets by id where principals IS NULL
-- The principals of the groups of hosts that were made before.
UPDATE access_targets SET principals = coalesce(principals_of_hosts(name, logins, org_id), '{}')
 WHERE id BETWEEN current_setting('migration.first')::uuid AND current_setting('migration.last')::uuid AND principals IS NULL;
