package session

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/claudeops/claudeops/internal/content"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/strictjson"
)

// HandoffSchema is the JSON Schema of a handoff, for whoever writes one.
//
//go:embed handoff.schema.json
var HandoffSchema []byte

// Bounds of a handoff; handoff.schema.json says the same.
const (
	MaxHandoff       = 64 << 10 // bytes of the file
	handoffVersion   = 1
	maxServices      = 20
	maxService       = 100 // runes, as all below
	maxFindings      = 20
	maxFinding       = 2000
	maxWantedFile    = 256
	maxWantedProof   = 4000
	maxWantedContent = 16000
)

// handoffName is the file that an agent leaves.
const handoffName = "handoff.json"

// Handoff is what a session leaves for a higher tier. It is the agent's text: data, never an instruction, and its tier is
// a recommendation that configuration caps.
type Handoff struct {
	Version         int      `json:"version" required:"true"`
	RecommendedTier int      `json:"recommended_tier" required:"true"`
	Services        []string `json:"services"`
	Findings        []string `json:"findings" required:"true"`
	WantedChange    Wanted   `json:"wanted_change"`
}

// Wanted is a change to a procedure that an agent wants and may not propose itself.
type Wanted struct {
	File     string `json:"file"`
	Evidence string `json:"evidence"`
	Text     string `json:"text"`
}

// ParseHandoff reads a handoff strictly. The error is one line for people and quotes little of the text.
func ParseHandoff(raw []byte) (Handoff, error) {
	var h Handoff
	var wrong []string
	if len(strings.TrimSpace(string(raw))) == 0 {
		return Handoff{}, errors.New("the handoff is empty")
	}
	for _, v := range strictjson.Decode(raw, &h, strictjson.Options{What: "handoff", RefuseNUL: true}) {
		wrong = append(wrong, v.Message)
	}
	if len(wrong) == 0 {
		wrong = h.problems()
	}
	if len(wrong) > 0 {
		const most = 3
		if n := len(wrong); n > most {
			wrong = append(wrong[:most], fmt.Sprintf("and %d more", n-most))
		}
		text := content.Clean(strings.Join(wrong, "; "), 600)
		return Handoff{}, errors.New(text)
	}
	return h, nil
}

func (h Handoff) problems() (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if h.Version != handoffVersion {
		add("version is %d, and only %d is known", h.Version, handoffVersion)
	}
	if h.RecommendedTier < int(gitprovider.TierObserve) || h.RecommendedTier > int(gitprovider.TierRemediate) {
		add("recommended_tier is %d, which is no tier", h.RecommendedTier)
	}
	if len(h.Services) > maxServices {
		add("services lists %d, more than %d", len(h.Services), maxServices)
	}
	if len(h.Findings) == 0 || len(h.Findings) > maxFindings {
		add("findings lists %d, and 1 to %d are wanted", len(h.Findings), maxFindings)
	}
	long := func(name, text string, limit int) {
		if n := len([]rune(text)); n > limit {
			add("%s has %d characters, more than %d", name, n, limit)
		}
	}
	for _, s := range h.Services {
		long("a service", s, maxService)
	}
	for _, f := range h.Findings {
		long("a finding", f, maxFinding)
	}
	long("wanted_change.file", h.WantedChange.File, maxWantedFile)
	long("wanted_change.evidence", h.WantedChange.Evidence, maxWantedProof)
	long("wanted_change.text", h.WantedChange.Text, maxWantedContent)
	return out
}

// mapTexts is the handoff with each text replaced by what f makes of it.
func (h Handoff) mapTexts(f func(string) string) Handoff {
	out := h
	out.Services, out.Findings = nil, nil
	for _, s := range h.Services {
		out.Services = append(out.Services, f(s))
	}
	for _, s := range h.Findings {
		out.Findings = append(out.Findings, f(s))
	}
	out.WantedChange = Wanted{File: f(h.WantedChange.File), Evidence: f(h.WantedChange.Evidence), Text: f(h.WantedChange.Text)}
	return out
}

// readHandoff returns the bytes of the handoff in the folder; nil if there is none. Whatever the agent put there: only a
// regular file of at most MaxHandoff bytes is read, links are not followed, and nothing blocks.
func readHandoff(folder *os.Root) ([]byte, error) {
	named, err := folder.Lstat(handoffName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.New("the handoff cannot be looked at")
	}
	if !named.Mode().IsRegular() {
		return nil, errors.New("the handoff is no regular file")
	}
	f, err := folder.OpenFile(handoffName, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.New("the handoff cannot be opened")
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(named, opened) {
		return nil, errors.New("the handoff was exchanged while it was read")
	}
	raw, err := io.ReadAll(io.LimitReader(f, MaxHandoff+1))
	if err != nil {
		return nil, errors.New("the handoff cannot be read")
	}
	if len(raw) > MaxHandoff {
		return nil, fmt.Errorf("the handoff is larger than %d bytes", MaxHandoff)
	}
	return raw, nil
}
