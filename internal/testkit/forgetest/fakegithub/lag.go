package fakegithub

import "fmt"

// Lag makes every object that is made through a door from now on unknown at first: to the next request of REST that
// names it, and to the next of GraphQL. Such a request is answered as if there were none. Lists and what people do
// behind the doors do not lag.
func (s *Server) Lag() { s.host.Locked(func() { s.lagging = true }) }

// Settle ends the lag of all objects that were made so far, as time does.
func (s *Server) Settle() {
	s.host.Locked(func() {
		for _, st := range s.repos.states {
			st.unknown = map[string][]door{}
		}
	})
}

// door is one of GitHub's two languages, which see new objects apart.
type door int

const (
	doorREST door = iota
	doorGraph
)

// made notes that an object was made: a full name of a branch, the id of a git object, or the name of a pull request.
func (p *place) made(object string) {
	if p.s.lagging {
		p.unknown[object] = []door{doorREST, doorGraph}
	}
}

// hides reports whether a door does not know an object yet. It knows it the next time.
func (p *place) hides(d door, object string) bool {
	waiting := p.unknown[object]
	for i, have := range waiting {
		if have == d {
			p.unknown[object] = append(append([]door{}, waiting[:i]...), waiting[i+1:]...)
			return true
		}
	}
	return false
}

func pullName(number int) string { return fmt.Sprintf("#%d", number) }

func branchName(branch string) string { return "refs/heads/" + branch }

// commitsOf names the commits of a branch, which a pull request may lack when it knows the branch already.
func commitsOf(branch string) string { return "commits of " + branch }
