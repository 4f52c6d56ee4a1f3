package fakegithub

// What a request asks of a place is made by parts of it, each with the place as all that it knows.

// gitGraph makes the objects of GraphQL for commits, trees, branches and checks.
type gitGraph struct{ at *place }

// pullGraph makes those for the repository, pull requests and what belongs to them.
type pullGraph struct{ at *place }

// restView makes the objects of REST.
type restView struct{ at *place }

// objectReader reads git's objects.
type objectReader struct{ at *place }

// pullRules are GitHub's rules about pull requests.
type pullRules struct{ at *place }

// rights say who may do what.
type rights struct{ at *place }

func (p *place) git() *gitGraph      { return &gitGraph{p} }
func (p *place) graph() *pullGraph   { return &pullGraph{p} }
func (p *place) rest() *restView     { return &restView{p} }
func (p *place) read() *objectReader { return &objectReader{p} }
func (p *place) rules() *pullRules   { return &pullRules{p} }
func (p *place) rights() *rights     { return &rights{p} }
