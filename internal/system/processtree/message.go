package processtree

import "time"

// start is the first line that the reaper gets: what to run, as JSON.
type start struct {
	Path  string        `json:"path"`
	Args  []string      `json:"args"`
	Env   []string      `json:"env"`
	Dir   string        `json:"dir"`
	Group string        `json:"group"`
	Grace time.Duration `json:"grace"`
	Most  int           `json:"most"` // processes; 0 for any number
	Extra []byte        `json:"extra,omitempty"`
	UID   int           `json:"uid,omitempty"`
	Bound int           `json:"bound,omitempty"` // threads; 0 for any number
}

// order is the second line, the last one: the tree is to end.
type order struct{}

// report is a line that the reaper answers. One of the fields is set.
type report struct {
	Started int     `json:"started,omitempty"` // the command's process id
	Problem string  `json:"problem,omitempty"` // the command could not be started
	Status  *uint32 `json:"status,omitempty"`  // the command's wait status
	Ended   *ended  `json:"ended,omitempty"`   // the tree has ended, but for what remains
}

type ended struct {
	Status    *uint32 `json:"status,omitempty"` // the command's; nil if it runs still
	Remaining []int   `json:"remaining,omitempty"`
	TooMany   bool    `json:"too_many,omitempty"`
}
