-- The hash of the policy that judged an attempt; '' in rows from before, and where no policy could be read. The hash of
-- a row covers it where it is not ''.

-- +goose Up
ALTER TABLE audit ADD COLUMN policy TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE audit DROP COLUMN policy;
