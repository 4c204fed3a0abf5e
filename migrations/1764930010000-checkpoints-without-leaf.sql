-- True for a tree of an organization whose last checkpoint is no leaf of the tree of the deployment, because that tree was damaged. A later
-- round adds the checkpoint to it. PostgreSQL keeps the default beside the table and writes no row.
ALTER TABLE audit_trees ADD COLUMN lacks_leaf boolean NOT NULL DEFAULT false;
