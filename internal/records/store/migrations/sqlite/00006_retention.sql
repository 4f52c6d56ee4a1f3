-- +goose Up

-- When body and contents of a settled proposal were removed; NULL: they are there.
ALTER TABLE proposals ADD COLUMN pruned_us INTEGER;
CREATE INDEX proposals_unpruned ON proposals (created_us) WHERE pruned_us IS NULL;
