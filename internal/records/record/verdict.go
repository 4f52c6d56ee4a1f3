package record

import "github.com/claudeops/claudeops/internal/base/fault"

// Gate names one gate of the pipeline (design §3), in the order of Gates.
type Gate string

// The gates.
const (
	GateArguments  Gate = "arguments"
	GateTier       Gate = "tier"
	GateScope      Gate = "scope"
	GateBaseTree   Gate = "base_tree"
	GateContent    Gate = "content"
	GateRepository Gate = "repository"
	GateRevision   Gate = "revision"
	GateDuplicate  Gate = "duplicate"
	GateCooldown   Gate = "cooldown"
	GateAudit      Gate = "audit"
	GateCaps       Gate = "caps"
)

// Gates lists them, in the order in which they are asked.
func Gates() []Gate {
	return []Gate{GateArguments, GateTier, GateScope, GateBaseTree, GateContent, GateRepository, GateRevision,
		GateDuplicate, GateCooldown, GateAudit, GateCaps}
}

// Ruling is the result of a gate.
type Ruling string

// The rulings.
const (
	Pass    Ruling = "pass"
	Deny    Ruling = "deny"
	Skipped Ruling = "skipped" // could not be asked, because an earlier gate had refused
)

// Verdict is one gate's ruling on one request.
type Verdict struct {
	Gate       Gate              `json:"gate"`
	Ruling     Ruling            `json:"ruling"`
	Detail     string            `json:"detail,omitempty"` // why it passed or was skipped, for people
	Violations []fault.Violation `json:"violations,omitempty"`
	// what the gate lets pass and a person should know before merging
	Warnings []string `json:"warnings,omitempty"`
}
