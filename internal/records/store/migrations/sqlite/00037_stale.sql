-- +goose Up

-- When a person was last seen to act on a pull request, when people were last reminded of it, and the labels that it
-- was last seen with.
ALTER TABLE pulls ADD COLUMN acted_us INTEGER;
ALTER TABLE pulls ADD COLUMN reminded_us INTEGER;
ALTER TABLE pulls ADD COLUMN labels TEXT NOT NULL DEFAULT '';
