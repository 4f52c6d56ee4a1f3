package record

// IDKind says of what an id is, where a person may give its beginning.
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
