-- +goose Up

-- What the lines of a proposal name and do, as JSON; '' for nothing, or where they were removed with the contents.
ALTER TABLE proposals ADD COLUMN facts TEXT NOT NULL DEFAULT '';
