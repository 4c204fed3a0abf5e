-- background
ALTER TABLE oauth_clients VALIDATE CONSTRAINT oauth_clients_kind_check;
