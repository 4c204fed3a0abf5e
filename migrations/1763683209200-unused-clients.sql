-- Clients that registered themselves, by when they were used last: those that were not for 30 days are cleaned up.
CREATE INDEX oauth_clients_unused ON oauth_clients (last_used_at) WHERE kind = 'dynamic';
