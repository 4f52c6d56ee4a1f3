package record

// IDKind names the kind of thing that an id stands for.
type IDKind string

// The kinds.
const (
	IDOfSession    IDKind = "session"
	IDOfAttempt    IDKind = "attempt"
	IDOfDryRun     IDKind = "dry run"
	IDOfToken      IDKind = "token"
	IDOfConnection IDKind = "connection"
	IDOfLogin      IDKind = "login"
	IDOfScriptRun  IDKind = "run of a script"
	IDOfSnapshot   IDKind = "snapshot"
)
