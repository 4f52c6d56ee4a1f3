// Package gitea is the provider for Gitea and Forgejo. Types and most calls are those of Gitea's SDK; plain requests
// stand in where it lacks a route (labels by name), leaves out a part of the answer, wraps a route in a way that costs
// requests, or pages wrongly. HTTP itself (token, retries, redirects, limits) is internal/system/transport's.
//
// port.go has the methods of the port. Each hands on to the part that does it (snapshots, commitWriter, opener, labels,
// ...), and makes a fault of what comes back; errors.go says what a refusal means.
//
// # What the methods cost
//
// n is the number of pull requests of ours whose commits were not seen before; lists of more than 50 cost one request
// for each further page.
//
//	Snapshot         1 of the files alone, contents apart; else
//	                 4 + n requests in 2 rounds (1 more for each branch name, contents apart; with the pull requests of
//	                 others one for each that was not seen, at most gitprovider.MaxForeign, in the second round)
//	Commit           1 (1 more when more than 30 files cannot be proven by the tree's id; 2 when the base had moved)
//	OpenPullRequest  1 for a branch that this process has just made, else 4 in 3 rounds (2 in one if it is open)
//	Label            1 (3 where labels are taken by id alone; 2 more for labels that have to be made)
//	FindByHead       1 when there is one, else every page of the list
//	BranchTip        1 (2 when there is no such branch)
//	DeleteBranch     2
//	ListOpen         1 + n
//	Append           1 (2 when it is refused); Comment 1
//	Details          2 in one round; SetText 1; Remarks 3 in one round
//	Status           4 in 2 rounds (3 when its files are known), and at most 3 more looks in 3 s when it cannot be merged
//
// So a proposal costs 7 + n requests in 5 rounds, whatever the number of its files, and 6 + n when the label's id was
// seen before. A repository whose tree has more than 1000 entries costs further pages, or one request for each folder.
//
// # What the server does not guard
//
// A commit takes the base branch as it is when the request arrives: the answer is checked, and a branch made on another
// base is removed again. The deletion of a branch cannot name the commit it expects. Two creations of one pull request
// that are under way together both succeed. Each of these is closed as far as looking can close it; see Commit,
// DeleteBranch and OpenPullRequest.
package gitea
