-- +goose Up

-- The hash of the policy that judged a proposal, as the audit has it; '' in those from before.
ALTER TABLE proposals ADD COLUMN policy TEXT COLLATE "C" NOT NULL DEFAULT '';
