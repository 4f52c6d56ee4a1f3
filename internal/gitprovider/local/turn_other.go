//go:build !unix

package local

// turn needs flock(2): elsewhere git's own locks keep writers apart, and what a killed process had started is for a
// settlement to find.
type turn struct{}

func tryTurn(string) (*turn, error) { return &turn{}, nil }

func (t *turn) end() {}
