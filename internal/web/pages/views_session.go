package pages

// Sessions are the sessions of agents.
type Sessions struct {
	Page
	Rows     []SessionRow
	States   []Option
	Filtered bool
	Older    string // query of the next page; "" for none
	First    string // query of the newest page; "" if this is it
	Start    *StartForm
	WhyNot   string // why there is no form
	Every    string // "" where nothing is scheduled
	Next     When   // the next scheduled one; the zero When if that is not known
}

// StartForm starts a session.
type StartForm struct{ Tiers []Option }

// SessionRow is a row of the listing.
type SessionRow struct {
	Link      string // without the base
	ID        string
	State     string
	Tier      string
	Trigger   string
	Reason    string
	At        When
	Took      string
	Turns     int
	Cost      string
	Proposals string // in words
}

// SessionPage is one session.
type SessionPage struct {
	Page
	SessionRow
	Running    bool
	CanStop    bool
	Ended      When
	Model      string
	Claude     string
	DryRun     bool
	ToolCalls  int
	Denied     int
	Denials    List
	LeftOut    List // contributions of mounted repositories
	Note       string
	Report     string
	Stderr     string
	Odd        string // what was not kept of its output, in words
	Escalation string
	Chain      []Link // of sessions that handed over to each other, this one included
	Received   *Handoff
	Left       *Handoff
	Problem    string // of the handoff that it left
	Attempts   []Attempt
	More       string // query of all proposals of the session, where some are left out
	Events     []Event
	Last       int
	Older      string // queries; "" for none
	Newer      string
	Newest     string
}

// Link is a session of a chain.
type Link struct {
	Link, Tier, State string
	Here              bool
}

// Handoff is what one session left for another.
type Handoff struct {
	Tier     int
	Services List
	Findings []string
	File     string
	Evidence string
	Text     string
}

// Event is one thing that an agent said or did.
type Event struct {
	Seq              int
	At               When
	Kind, Tool, Text string
	Cut              bool // the text is longer
}

// Table is the listing of the page.
func (v SessionPage) Table() Table {
	return Table{v.Base, "Proposals made in this session", v.Attempts}
}
