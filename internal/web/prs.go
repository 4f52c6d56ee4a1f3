package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/prflow"
)

// createPR is create_pr. The body goes to the flow as it came, so that REST is as strict as MCP.
func (s *Server) createPR(c *call) (answer, error) {
	key, err := idempotencyKey(c)
	var body []byte
	if err == nil {
		body, err = readBody(c, "application/json")
	}
	if err != nil {
		e := fault.From(err)
		s.flow(c).Reject(c.Context(), caller(c), e.Code, e.Message+" ("+sizeOf(c)+")")
		return answer{}, err
	}
	refused := func(err error) error {
		s.flow(c).Reject(c.Context(), caller(c), fault.CodeOf(err), fault.From(err).Message)
		return err
	}
	return s.once(c, key, body, refused, func() (answer, error) {
		result, err := s.flow(c).Create(c.Context(), caller(c), body)
		return proposed(result), err
	})
}

// proposed is 201 for a pull request that was opened now, 200 for a dry run and for one that existed.
func proposed(result prflow.CreateResult) answer {
	a := answer{status: http.StatusCreated, value: result}
	if result.DryRun || result.Reused {
		a.status = http.StatusOK
	}
	return a
}

// Bounds of an Idempotency-Key: how long it is remembered, and how long it may be, in bytes.
const (
	keyLifetime = 24 * time.Hour
	maxKey      = 255
)

func idempotencyKey(c *call) (string, error) {
	given := c.Header.Values("Idempotency-Key")
	if len(given) == 0 {
		return "", nil
	}
	printable := func(b byte) bool { return b > ' ' && b < 0x7f }
	if len(given) > 1 || len(given[0]) == 0 || len(given[0]) > maxKey ||
		slices.ContainsFunc([]byte(given[0]), func(b byte) bool { return !printable(b) }) {
		return "", fault.New(fault.InvalidArgument, "Idempotency-Key must be 1 to %d visible ASCII characters, once", maxKey)
	}
	return given[0], nil
}

// once does something under an Idempotency-Key: what was answered to the same body before is answered again. Only
// success is: a refusal may be different by now. refused records a key that is not good for the body.
func (s *Server) once(
	c *call, key string, body []byte, refused func(error) error, do func() (answer, error),
) (answer, error) {
	if key == "" {
		return do()
	}
	sum := sha256.Sum256(body)
	owner := string(c.who.Via) + ":" + c.who.Name // a person and a token may have the same name
	reply, err := s.Replies.TakeKey(c.Context(), owner, key, hex.EncodeToString(sum[:]), keyLifetime)
	if err != nil {
		return answer{}, refused(err)
	}
	if reply.Status != 0 {
		return answer{status: reply.Status, bytes: reply.Body, contentType: "application/json",
			header: http.Header{"Idempotency-Replayed": {"true"}}}, nil
	}
	a, err := do()
	if err != nil {
		return answer{}, err
	}
	a.bytes, a.contentType = encode(a.value), "application/json"
	if err := s.Replies.KeepReply(c.Context(), owner, key, Reply{a.status, a.bytes}); err != nil {
		s.Log.Warn("answer not kept for its Idempotency-Key", "request_id", c.id, "error", s.Redact(cause(fault.From(err))))
	}
	return a, nil
}

// repoParams are the arguments of list_prs.
type repoParams struct {
	RepoOwner string `query:"repo_owner" required:"true"`
	RepoName  string `query:"repo_name" required:"true"`
	CloneURL  string `query:"clone_url" doc:"Settles the provider if several are enabled"`
}

func (s *Server) listPRs(c *call) (answer, error) {
	raw, err := arguments(c, "")
	if err != nil {
		return answer{}, err
	}
	result, err := s.flow(c).List(c.Context(), raw)
	return answer{value: result}, err
}

func (s *Server) prStatus(c *call) (answer, error) {
	raw, err := arguments(c, c.PathValue("number"))
	if err != nil {
		return answer{}, err
	}
	result, err := s.flow(c).Status(c.Context(), raw)
	return answer{value: result}, err
}

// arguments writes a query as the JSON object that a tool would be called with, repeated and unknown names included: the
// flow's decoder refuses those, in the same words for every door. number is that of the path, "" for none.
func arguments(c *call, number string) ([]byte, error) {
	query, err := url.ParseQuery(c.URL.RawQuery)
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidArgument, "the query is malformed")
	}
	var b bytes.Buffer
	member := func(name string, value any) {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(name))
		b.WriteByte(':')
		b.Write(encode(value))
	}
	if n, err := strconv.ParseUint(number, 10, 31); err == nil {
		member("pr_number", json.RawMessage(strconv.FormatUint(n, 10)))
	} else if number != "" {
		member("pr_number", number)
	}
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range query[name] {
			member(name, value)
		}
	}
	return []byte("{" + b.String() + "}"), nil
}
