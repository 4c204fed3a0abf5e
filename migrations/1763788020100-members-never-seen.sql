-- The members no key of whom was ever used, by address: they may be anywhere in that order.
CREATE INDEX users_never_seen ON users (org_id, email_key COLLATE "C") WHERE key_used_on = '-infinity';
