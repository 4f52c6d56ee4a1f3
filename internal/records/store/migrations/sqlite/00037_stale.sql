-- +goose Up

-- When a person was last seen to act on a pull request, when people were last reminded of it, and a digest of the labels
-- that it was last seen with.
ALTER TABLE pulls ADD COLUMN acted_us INTEGER;
ALTER TABLE pulls ADD COLUMN reminded_us INTEGER;
ALTER TABLE pulls ADD COLUMN labels_digest TEXT NOT NULL DEFAULT '';
