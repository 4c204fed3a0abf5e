-- Whether a GitHub token may open every repository of an installation. Organizations that exist keep it until an admin switches it off;
-- a new organization names the repositories.
ALTER TABLE organizations ADD COLUMN github_all_repositories boolean NOT NULL DEFAULT true;
ALTER TABLE organizations ALTER COLUMN github_all_repositories SET DEFAULT false;
