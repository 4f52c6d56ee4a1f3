-- +goose Up

-- What the proposal answers to the review of the pull request that it adds to, as JSON; '' for nothing.
ALTER TABLE proposals ADD COLUMN answers TEXT NOT NULL DEFAULT '';
