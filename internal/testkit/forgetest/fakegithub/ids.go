package fakegithub

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// The prefixes of node ids, by what they stand for. Clients must not look into ids; the fake does.
const (
	kindRepo       = "R"
	kindRef        = "REF"
	kindCommit     = "C"
	kindTree       = "T"
	kindBlob       = "B"
	kindPull       = "PR"
	kindPullCommit = "PURC"
	kindReview     = "PRR"
	kindComment    = "IC"
	kindThread     = "PRRT"
	kindLine       = "PRRC"
	kindRequest    = "RR"
	kindLabel      = "LA"
	kindUser       = "U"
	kindBot        = "BOT"
	kindTeam       = "TE"
	kindRollup     = "SCR"
	kindStatus     = "S"
	kindContext    = "SC"
	kindCheckRun   = "CR"
	kindSuite      = "CS"
	kindApp        = "A"
	kindRun        = "WFR"
	kindWorkflow   = "W"
	kindProtection = "BPR"
	kindRuleset    = "RRS"
	kindInvitation = "RI"
)

// nodeID makes the id of a thing in a repository; name tells it from others of its kind.
func nodeID(kind string, repo int, name string) string {
	return kind + "_kwDO" + base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(repo)+"|"+name))
}

// parseNodeID is the inverse of nodeID.
func parseNodeID(id string) (kind string, repo int, name string, ok bool) {
	kind, code, ok := strings.Cut(id, "_kwDO")
	raw, err := base64.RawURLEncoding.DecodeString(code)
	number, name, split := strings.Cut(string(raw), "|")
	repo, numberErr := strconv.Atoi(number)
	return kind, repo, name, ok && split && err == nil && numberErr == nil
}
